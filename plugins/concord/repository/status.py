"""People's questions to the repository: how the last runs went, when links were done, which conflicts arose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, Executable, Select, func, select

from concord.repository.models import (
    Conflict,
    Link,
    Synchronization,
    SynchronizationRun,
    Transmission,
)
from concord.repository.opening import reading


@dataclass(frozen=True, slots=True)
class SynchronizationStatus:
    """The run of a synchronization now, if any, and when it was last done."""

    name: str
    epoch: int
    owner: str | None
    lease_acquired_at: datetime | None
    lease_expires_at: datetime | None
    last_started_at: datetime | None


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """A link and the start of its last completed transmission."""

    synchronization: str
    direction: str
    source: str
    target: str
    last_started_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run: what it was to do, and how it went."""

    id: str
    synchronization: str
    epoch: int
    owner: str
    dag_run_id: str
    run_type: str
    direction: str | None
    tables: Sequence[str] | None
    plan_only: bool
    interval_start: datetime | None
    interval_end: datetime | None
    started_at: datetime
    ended_at: datetime | None
    state: str
    message: str | None


@dataclass(frozen=True, slots=True)
class TransmissionStatus:
    """A transmission: rows per outcome in total and per table, seconds per step."""

    id: str
    run_id: str
    direction: str
    source: str
    target: str
    plan_only: bool
    started_at: datetime
    ended_at: datetime
    state: str
    error_code: str | None
    error_message: str | None
    bytes: int
    seconds: dict[str, float]
    tables: Sequence[dict[str, Any]]
    acquired: int
    applied: int
    converged: int
    superseded: int
    lost: int
    filtered: int
    held: int
    quarantined: int
    conflicts: int
    not_owned: int
    inserted_for_update: int
    lag: float | None
    rows_per_second: float | None


@dataclass(frozen=True, slots=True)
class ConflictCount:
    """How many conflicts of one type a table had."""

    synchronization: str
    table_name: str
    conflict_type: str
    count: int


def synchronizations(engine: Engine) -> list[SynchronizationStatus]:
    """Every synchronization that ever ran, by name."""
    query = _columns(Synchronization, SynchronizationStatus).order_by(Synchronization.name)
    return [SynchronizationStatus(**row) for row in _rows(engine, query)]


def links(engine: Engine) -> list[LinkStatus]:
    """Every link that ever ran, forward before reverse."""
    query = _columns(Link, LinkStatus).order_by(Link.synchronization, Link.direction)
    return [LinkStatus(**row) for row in _rows(engine, query)]


def last_runs(engine: Engine, synchronization: str | None = None, limit: int = 20) -> list[RunStatus]:
    """The newest runs, newest first, of one synchronization or of all."""
    newest_first = SynchronizationRun.started_at.desc(), SynchronizationRun.epoch.desc()
    query = _columns(SynchronizationRun, RunStatus).order_by(*newest_first).limit(limit)
    if synchronization is not None:
        query = query.where(SynchronizationRun.synchronization == synchronization)
    return [RunStatus(**row) for row in _rows(engine, query)]


def transmissions(engine: Engine, run_id: str) -> list[TransmissionStatus]:
    """The transmissions of a run in the order in which they began."""
    in_order = Transmission.started_at, Transmission.ended_at
    query = (
        _columns(Transmission, TransmissionStatus).where(Transmission.run_id == run_id).order_by(*in_order)
    )
    return [TransmissionStatus(**row) for row in _rows(engine, query)]


@dataclass(frozen=True, slots=True)
class InsertedForUpdate:
    """How many updates found no row at the target of a link, and when that was last so."""

    synchronization: str
    target: str
    rows: int
    last_at: datetime


def inserted_for_updates(engine: Engine) -> list[InsertedForUpdate]:
    """By target, as long as the transmissions are kept: a sign that rows went there behind capture's back."""
    where = SynchronizationRun.synchronization, Transmission.target
    query = (
        select(
            *where,
            func.sum(Transmission.inserted_for_update).label("rows"),
            func.max(Transmission.ended_at).label("last_at"),
        )
        .join(SynchronizationRun, SynchronizationRun.id == Transmission.run_id)
        .where(Transmission.inserted_for_update > 0)
        .group_by(*where)
        .order_by(*where)
    )
    return [InsertedForUpdate(**row) for row in _rows(engine, query)]


def conflict_counts(
    engine: Engine, synchronization: str | None = None, since: datetime | None = None
) -> list[ConflictCount]:
    """Conflicts per synchronization, table and type, decided at or after `since`."""
    kinds = Conflict.synchronization, Conflict.table_name, Conflict.conflict_type
    query = select(*kinds, func.count().label("count")).group_by(*kinds).order_by(*kinds)
    if synchronization is not None:
        query = query.where(Conflict.synchronization == synchronization)
    if since is not None:
        query = query.where(Conflict.decided_at >= since)
    return [ConflictCount(**row) for row in _rows(engine, query)]


def _columns(record: type[Any], status: type[Any]) -> Select[Any]:
    """The columns of `record` that `status` has a field for."""
    return select(*(getattr(record, field.name) for field in fields(status)))


def _rows(engine: Engine, query: Executable) -> list[dict[str, Any]]:
    with reading(engine).begin() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
