"""The cost of a link's runs so far, and of its last copy (S0-05)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Select, select

from concord.repository.models import SynchronizationRun, Transmission, TransmissionState
from concord.repository.opening import reading
from concord.repository.runs import INITIALIZE

#: Runs that a mean is taken of, the newest.
RUNS = 100
#: A step in which a run rests, and costs nothing.
_RESTS = "throttle"
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of one transmission."""

    changes: int  #: operations, or rows
    bytes: int
    seconds: float


def of_runs(engine: Engine, synchronization: str, direction: str) -> list[Spent]:
    """Of the newest ones that carried something: the seconds of their steps, since a run may wait for users."""
    runs = _spent(synchronization).where(
        Transmission.direction == direction,
        Transmission.acquired > 0,
        SynchronizationRun.run_type != INITIALIZE,
    )
    with reading(engine).begin() as connection:
        return [
            Spent(each.acquired, each.bytes, sum(s for step, s in each.seconds.items() if step != _RESTS))
            for each in connection.execute(runs.limit(RUNS))
        ]


def changes_a_day(engine: Engine, synchronization: str, table: str) -> float | None:
    """Rows of one table that the newest runs wrote, by the time between the first and the last; None: unknown."""
    kept = (Transmission.tables, Transmission.started_at, Transmission.ended_at)
    runs = _spent(synchronization).with_only_columns(*kept).where(SynchronizationRun.run_type != INITIALIZE)
    with reading(engine).begin() as connection:
        found = connection.execute(runs.limit(RUNS)).all()
    if len(found) < 2:
        return None
    written = sum(each["applied"] for run in found for each in run.tables if each["table"] == table)
    seconds = (found[0].ended_at - found[-1].started_at).total_seconds()
    return float(written / max(seconds, 1.0) * _DAY)


def of_copy(engine: Engine, synchronization: str) -> Spent | None:
    """Of the newest one that is recorded, from its beginning to its end; None where none is."""
    copies = _spent(synchronization).where(SynchronizationRun.run_type == INITIALIZE)
    with reading(engine).begin() as connection:
        found = connection.execute(copies.limit(1)).first()
    if found is None:
        return None
    return Spent(found.acquired, found.bytes, (found.ended_at - found.started_at).total_seconds())


def _spent(synchronization: str) -> Select[Any]:
    """Transmissions that succeeded, newest first."""
    kept = (Transmission.acquired, Transmission.bytes, Transmission.seconds)
    return (
        select(*kept, Transmission.started_at, Transmission.ended_at)
        .join(SynchronizationRun, SynchronizationRun.id == Transmission.run_id)
        .where(
            SynchronizationRun.synchronization == synchronization,
            Transmission.state == TransmissionState.SUCCEEDED,
            Transmission.plan_only.is_(False),
        )
        .order_by(Transmission.started_at.desc())
    )
