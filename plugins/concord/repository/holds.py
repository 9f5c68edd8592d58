"""Why links wait for a person, who let them go on, and until when that counts (F95)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import ColumnElement, Engine, and_, not_, select, update

from concord.jobs.link import Direction
from concord.repository.insertion import insert_into
from concord.repository.models import Hold
from concord.repository.opening import reading
from concord.rules import brake


@dataclass(frozen=True, slots=True)
class Waiting:
    """One open hold, as people see it."""

    id: str
    synchronization: str
    direction: str
    hold: brake.Hold
    since: str
    held_at: datetime
    approved_at: datetime | None
    approved_by: str | None
    approved_up_to: int | None


def record(
    engine: Engine,
    synchronization: str,
    direction: Direction,
    found: Sequence[brake.Hold],
    *,
    since: str,
    run_id: str,
    now: datetime,
) -> None:
    """Take down why a run was held; what an earlier run waited for with another count is one hold with it.

    Every other hold of the link is over, an approval that was not enough among them. A hold is not over that this
    run would have used if something else had not held it. Else two approvals would undo each other for ever.
    """
    mine = _open(synchronization, direction)
    with engine.begin() as connection:
        kept = [
            connection.scalars(
                update(Hold)
                .where(mine, Hold.approved_at.is_(None), Hold.since == since)
                .where(_about(hold))
                .values(seen=hold.count, table_rows=hold.rows, run_id=run_id)
                .returning(Hold.id)
            ).all()
            for hold in found
        ]
        known = [hold_id for ids in kept for hold_id in ids]
        over = and_(mine, Hold.id.not_in(known), not_(_still_agreed(found, since)))
        connection.execute(update(Hold).where(over).values(ended_at=now))
        for hold, ids in zip(found, kept, strict=True):
            if not ids:
                named = {"synchronization": synchronization, "direction": direction, "since": since}
                row = {**_row(hold), **named, "id": uuid4().hex, "run_id": run_id, "held_at": now}
                connection.execute(insert_into(connection, Hold).values(row))


def _row(hold: brake.Hold) -> dict[str, object]:
    return {"table_name": hold.table, "kind": hold.kind, "seen": hold.count, "table_rows": hold.rows}


def _about(hold: brake.Hold) -> ColumnElement[bool]:
    return and_(Hold.table_name == hold.table, Hold.kind == hold.kind)


def _still_agreed(found: Sequence[brake.Hold], since: str) -> ColumnElement[bool]:
    """Approvals of what this run, which went on from `since`, did not name: they stand while the link does.

    An oscillation goes by no session: it says nothing of where the others stand, nor they of it.
    """
    agreed = and_(Hold.approved_at.is_not(None), *(not_(_about(hold)) for hold in found))
    return and_(agreed, Hold.since.in_([since, ""])) if since else agreed


def approve(engine: Engine, synchronization: str, who: str, now: datetime) -> list[Waiting]:
    """Let what is held now pass once, with some headroom; returns all that is approved, since it may be said
    twice."""
    found = waiting(engine, synchronization)
    agree(engine, {each.id: each.hold.count for each in found if each.approved_at is None}, who, now)
    return waiting(engine, synchronization)


def agree(engine: Engine, seen: Mapping[str, int], who: str, now: datetime) -> int:
    """Let these holds (id → the count that `who` has seen) pass once, with some headroom; how many still wait."""
    with engine.begin() as connection:
        return sum(
            connection.execute(
                update(Hold)
                .where(Hold.id == hold_id, Hold.ended_at.is_(None), Hold.approved_at.is_(None))
                .values(approved_at=now, approved_by=who, approved_up_to=brake.headroom(count))
            ).rowcount
            for hold_id, count in seen.items()
        )


def approvals(engine: Engine, synchronization: str, direction: Direction) -> tuple[brake.Approval, ...]:
    """The approvals that the next run of a link may use."""
    return tuple(
        brake.Approval(
            table=each.hold.table, kind=each.hold.kind, up_to=each.approved_up_to, since=each.since
        )
        for each in waiting(engine, synchronization)
        if each.direction == direction and each.approved_up_to is not None
    )


def end(
    engine: Engine, synchronization: str, direction: Direction, tables: Iterable[str], now: datetime
) -> None:
    """A link has carried these tables: nothing waits there any more, and an approval is used."""
    carried = and_(_open(synchronization, direction), Hold.table_name.in_(list(tables)))
    with engine.begin() as connection:
        connection.execute(update(Hold).where(carried).values(ended_at=now))


def waiting(engine: Engine, synchronization: str | None = None) -> list[Waiting]:
    """Every open hold, oldest first."""
    in_order = Hold.held_at, Hold.direction, Hold.table_name, Hold.kind
    query = select(Hold.__table__).where(_open(synchronization)).order_by(*in_order)
    with reading(engine).begin() as connection:
        return [
            Waiting(
                id=row.id,
                synchronization=row.synchronization,
                direction=row.direction,
                hold=brake.Hold(table=row.table_name, kind=row.kind, count=row.seen, rows=row.table_rows),
                since=row.since,
                held_at=row.held_at,
                approved_at=row.approved_at,
                approved_by=row.approved_by,
                approved_up_to=row.approved_up_to,
            )
            for row in connection.execute(query)
        ]


def _open(synchronization: str | None, direction: Direction | None = None) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [Hold.ended_at.is_(None)]
    if synchronization is not None:
        conditions.append(Hold.synchronization == synchronization)
    if direction is not None:
        conditions.append(Hold.direction == direction)
    return and_(*conditions)
