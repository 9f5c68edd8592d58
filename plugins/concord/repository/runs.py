"""How a synchronization run begins and ends, and what its end means for the synchronization."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection, Engine, Update, or_, select, update

from concord.jobs.link import Direction
from concord.messages.errors import LeaseLost
from concord.repository.insertion import insert_into
from concord.repository.lease import Lease, hold_epoch
from concord.repository.models import RunState, Synchronization, SynchronizationRun
from concord.repository.opening import reading
from concord.values.interval import Interval

#: The type of a run that copied a replication's tables anew. The others have Airflow's word.
INITIALIZE = "initialize"


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of the synchronization a run covers. Only a whole one may mark it as done."""

    direction: Direction | None = None  #: None is both
    tables: Sequence[str] | None = None  #: None is all
    plan_only: bool = False
    interval: Interval | None = None  #: None is all that has arrived

    @property
    def covers_links(self) -> bool:
        """Does a transmission of this run carry all that its link has to send?"""
        return self.tables is None and self.interval is None and not self.plan_only

    @property
    def is_whole(self) -> bool:
        return self.covers_links and self.direction is None


@dataclass(frozen=True, slots=True)
class Run:
    """A run, as the repository knows it."""

    id: str
    synchronization: str
    epoch: int
    started_at: datetime
    state: RunState
    scope: Scope


WHOLE = Scope()


def begin_run(
    engine: Engine,
    lease: Lease,
    *,
    dag_run_id: str,
    run_type: str,
    scope: Scope = WHOLE,
) -> str:
    """Record a run that started when `lease` was acquired; return its id (32 hexadecimal digits).

    Earlier runs that never said how they ended are marked as released. Raises LeaseLost.
    """
    run_id = uuid4().hex
    with engine.begin() as connection:
        hold_epoch(connection, lease.synchronization, lease.epoch)
        _release_runs_before(connection, lease)
        row = {
            "id": run_id,
            "synchronization": lease.synchronization,
            "epoch": lease.epoch,
            "owner": lease.owner,
            "dag_run_id": dag_run_id,
            "run_type": run_type,
            "direction": scope.direction,
            "tables": None if scope.tables is None else list(scope.tables),
            "plan_only": scope.plan_only,
            "interval_start": scope.interval and scope.interval.starts_at,
            "interval_end": scope.interval and scope.interval.ends_at,
            "started_at": lease.acquired_at,
            "state": RunState.RUNNING,
        }
        connection.execute(insert_into(connection, SynchronizationRun).values(row))
    return run_id


def last_synchronized(engine: Engine, synchronization: str) -> datetime | None:
    """When the last whole synchronization that succeeded began (S1-18); None is never."""
    query = select(Synchronization.last_started_at).where(Synchronization.name == synchronization)
    with reading(engine).begin() as connection:
        return connection.scalar(query)


def complete_run(engine: Engine, run_id: str, now: datetime) -> None:
    """End the run well; a whole one hands its start time to the synchronization (S1-20).

    A run that slept while later ones completed began before the time that stands there, which stays.
    Nothing happens when it has been done before. Raises LeaseLost when another run has taken over (F58).
    """
    with engine.begin() as connection:
        run = find_run(connection, run_id)
        if run.state == RunState.SUCCEEDED:
            return
        hold_epoch(connection, run.synchronization, run.epoch)
        connection.execute(_ending(run_id, RunState.SUCCEEDED, now, None))
        if run.scope.is_whole:
            last = Synchronization.last_started_at
            older = or_(last.is_(None), last < run.started_at)
            done = update(Synchronization).where(Synchronization.name == run.synchronization, older)
            connection.execute(done.values(last_started_at=run.started_at))


def fail_run(engine: Engine, run_id: str, message: str, now: datetime) -> None:
    """End the run badly; the synchronization keeps its old start time, so that the next run repeats (S1-21).

    A run that has succeeded stays so.
    """
    not_done = SynchronizationRun.state != RunState.SUCCEEDED
    with engine.begin() as connection:
        connection.execute(_ending(run_id, RunState.FAILED, now, message).where(not_done))


def release_run(engine: Engine, run_id: str, now: datetime) -> None:
    """End a run that is given up without a word of how it went; one that has ended stays as it is."""
    running = SynchronizationRun.state == RunState.RUNNING
    message = "The run was given up before it reported how it went."
    with engine.begin() as connection:
        connection.execute(_ending(run_id, RunState.RELEASED, now, message).where(running))


def find_run(connection: Connection, run_id: str) -> Run:
    """The run `run_id`. Raises LeaseLost when the repository was lost or replaced since it began (F64)."""
    row = connection.execute(
        select(SynchronizationRun.__table__).where(SynchronizationRun.id == run_id)
    ).first()
    if row is None:
        raise LeaseLost(
            f"The repository does not know run {run_id}: it was lost or replaced while the run was under "
            "way. Nothing is missing at the sites; start a new run.",
            run_id=run_id,
        )
    direction = None if row.direction is None else Direction(row.direction)
    interval = row.interval_start and Interval.between(row.interval_start, row.interval_end)
    scope = Scope(direction, row.tables, row.plan_only, interval)
    return Run(row.id, row.synchronization, row.epoch, row.started_at, RunState(row.state), scope)


def _ending(run_id: str, state: RunState, now: datetime, message: str | None) -> Update:
    ended = update(SynchronizationRun).where(SynchronizationRun.id == run_id)
    return ended.values(state=state, ended_at=now, message=message)


def _release_runs_before(connection: Connection, lease: Lease) -> None:
    overtaken = update(SynchronizationRun).where(
        SynchronizationRun.synchronization == lease.synchronization,
        SynchronizationRun.epoch < lease.epoch,
        SynchronizationRun.state == RunState.RUNNING,
    )
    message = f"The lease passed to {lease.owner} (epoch {lease.epoch}) before this run reported how it went."
    connection.execute(overtaken.values(state=RunState.RELEASED, ended_at=lease.acquired_at, message=message))
