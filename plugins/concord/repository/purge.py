"""Which records of the repository are old enough to go, and how they go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Engine, and_, delete, exists, false, func, not_, select
from sqlalchemy.orm import InstrumentedAttribute, aliased

from concord.repository.models import Comparison, Conflict, Hold, RunState, SynchronizationRun, Transmission
from concord.repository.opening import reading

#: Rows deleted in one transaction, so that no writer waits long.
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of record is kept after its end. None is for ever."""

    conflicts: timedelta | None
    transmissions: timedelta | None
    runs: timedelta | None
    comparisons: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """How many records went or, for a dry run, would have gone."""

    conflicts: int
    transmissions: int
    runs: int
    dry_run: bool
    comparisons: int = 0
    holds: int = 0


def purge(
    engine: Engine, retention: Retention, now: datetime, *, dry_run: bool = False, batch: int = BATCH
) -> PurgeReport:
    """Delete what is older than its retention, in batches, children before parents.

    A run stays while it runs, while a transmission of it stays, and while it is the last one that completed
    the whole synchronization. A dry run counts by the same conditions and deletes nothing.
    """

    def remove(record_id: InstrumentedAttribute[str], condition: ColumnElement[bool]) -> int:
        return (
            _count(engine, record_id, condition) if dry_run else _delete(engine, record_id, condition, batch)
        )

    old_transmission = _older(Transmission.ended_at, retention.transmissions, now)
    old_run = _older(SynchronizationRun.ended_at, retention.runs, now)
    return PurgeReport(
        conflicts=remove(Conflict.id, _older(Conflict.decided_at, retention.conflicts, now)),
        transmissions=remove(Transmission.id, and_(old_transmission, not_(_of_running_run()))),
        runs=remove(SynchronizationRun.id, and_(old_run, not_(_has(not_(old_transmission))), not_(_last()))),
        dry_run=dry_run,
        # Their differences go with them.
        comparisons=remove(Comparison.id, _older(Comparison.ended_at, retention.comparisons, now)),
        holds=remove(Hold.id, _older(Hold.ended_at, retention.runs, now)),
    )


def _older(
    ended_at: InstrumentedAttribute[datetime] | InstrumentedAttribute[datetime | None],
    retention: timedelta | None,
    now: datetime,
) -> ColumnElement[bool]:
    return false() if retention is None else ended_at < now - retention


def _of_running_run() -> ColumnElement[bool]:
    """The transmission belongs to a run that still runs."""
    return exists().where(SynchronizationRun.id == Transmission.run_id, SynchronizationRun.ended_at.is_(None))


def _has(staying: ColumnElement[bool]) -> ColumnElement[bool]:
    """The run has a transmission that stays."""
    return exists().where(Transmission.run_id == SynchronizationRun.id, staying)


def _last() -> ColumnElement[bool]:
    """The run is the last one that completed its whole synchronization."""
    later = aliased(SynchronizationRun)
    same = later.synchronization == SynchronizationRun.synchronization
    overtaken = exists().where(same, later.epoch > SynchronizationRun.epoch, _completed_whole(later))
    return and_(_completed_whole(SynchronizationRun), not_(overtaken))


def _completed_whole(run: type[SynchronizationRun]) -> ColumnElement[bool]:
    """It succeeded, and its scope was whole (`runs.Scope.is_whole`)."""
    everything = and_(run.direction.is_(None), run.tables.is_(None), run.interval_start.is_(None))
    return and_(run.state == RunState.SUCCEEDED, everything, not_(run.plan_only))


def _count(engine: Engine, record_id: InstrumentedAttribute[str], condition: ColumnElement[bool]) -> int:
    with reading(engine).begin() as connection:
        return connection.scalar(select(func.count(record_id)).where(condition)) or 0


def _delete(
    engine: Engine, record_id: InstrumentedAttribute[str], condition: ColumnElement[bool], batch: int
) -> int:
    old_ids = select(record_id).where(condition).limit(batch).correlate(None)
    statement = delete(record_id.class_).where(record_id.in_(old_ids))
    total, deleted = 0, batch
    while deleted == batch:
        with engine.begin() as connection:
            deleted = connection.execute(statement).rowcount
        total += deleted
    return total
