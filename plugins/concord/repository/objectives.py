"""The last measurements of links, and which parts of their objectives are missed (S2-10, S2-11)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Row, delete, func, select
from sqlalchemy.orm import InstrumentedAttribute

from concord.jobs.link import Direction, link_name
from concord.repository.insertion import insert_into
from concord.repository.models import MissedObjective, SynchronizationRun, Transmission
from concord.repository.opening import reading
from concord.rules.objective import Aim, Measured


def last_measured(engine: Engine) -> Mapping[str, Measured]:
    """Of each link by its name: the newest lag that is known, and the newest rate."""
    lags, rates = _newest(engine, Transmission.lag), _newest(engine, Transmission.rows_per_second)
    return {
        link: Measured(
            lags[link].measured if link in lags else None,
            rates[link].acquired if link in rates else 0,
            rates[link].measured if link in rates else None,
        )
        for link in {**lags, **rates}
    }


def _newest(engine: Engine, column: InstrumentedAttribute[float | None]) -> dict[str, Row[Any]]:
    of_link = (SynchronizationRun.synchronization, Transmission.direction)
    place = func.row_number().over(partition_by=of_link, order_by=Transmission.started_at.desc())
    query = (
        select(*of_link, Transmission.acquired, column.label("measured"), place.label("place"))
        .join(SynchronizationRun, SynchronizationRun.id == Transmission.run_id)
        .where(column.is_not(None))
        .subquery()
    )
    with reading(engine).begin() as connection:
        rows = connection.execute(select(query).where(query.c.place == 1)).all()
    return {link_name(row.synchronization, Direction(row.direction)): row for row in rows}


def missed(engine: Engine) -> Mapping[str, Mapping[Aim, datetime]]:
    """By link: the parts of its objective that are missed, each with the moment when that was first seen."""
    found: dict[str, dict[Aim, datetime]] = {}
    with reading(engine).begin() as connection:
        for row in connection.execute(select(MissedObjective.__table__)):
            link = link_name(row.synchronization, Direction(row.direction))
            found.setdefault(link, {})[Aim(row.aim)] = row.since
    return found


def keep_missed(
    engine: Engine, synchronization: str, direction: Direction, aim: Aim, since: datetime
) -> None:
    """It is missed; nothing changes where that is known."""
    row = {"synchronization": synchronization, "direction": direction, "aim": aim, "since": since}
    with engine.begin() as connection:
        connection.execute(insert_into(connection, MissedObjective).values(row).on_conflict_do_nothing())


def forget_missed(engine: Engine, synchronization: str, direction: Direction, aim: Aim) -> None:
    """It is kept again."""
    of_link = MissedObjective.synchronization == synchronization, MissedObjective.direction == direction
    with engine.begin() as connection:
        connection.execute(delete(MissedObjective).where(*of_link, MissedObjective.aim == aim))
