"""Concord's words about a run: its transmissions and conflicts, read from the repository."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, select

from concord.jobs.link import Direction, TableReport
from concord.repository.models import Conflict, RunState, SynchronizationRun, Transmission
from concord.repository.opening import open_repository, reading
from concord.versions.conflict import ConflictType


@dataclass(frozen=True)
class LinkOutcome:
    """One link's transmission: rows per table and outcome, seconds per step."""

    source: str
    target: str
    tables: tuple[TableReport, ...]
    seconds: Mapping[str, float]
    bytes: int

    def total(self, outcome: str) -> int:
        return sum(getattr(table, outcome) for table in self.tables)


@dataclass(frozen=True)
class Decided:
    """One conflict as the repository has it. A row is column → text, and None when it was deleted.

    `later_by` is how many seconds after the loser the winner was written.
    """

    table: str
    key: tuple[str, ...]
    type: ConflictType
    direction: Direction  #: of the link that met it
    reason: str
    winner: str
    loser: str
    winner_row: Mapping[str, Any] | None
    loser_row: Mapping[str, Any] | None
    later_by: float


@dataclass(frozen=True)
class RunOutcome:
    """One run of the synchronization."""

    succeeded: bool
    links: Mapping[Direction, LinkOutcome]
    conflicts: tuple[Decided, ...]


def latest_run(home: Path) -> RunOutcome | None:
    """The newest run in the repository below AIRFLOW_HOME; None before the first."""
    engine = reading(open_repository(URL.create("sqlite", database=str(home / "concord.db"))))
    with engine.connect() as connection:
        newest = select(SynchronizationRun.__table__).order_by(SynchronizationRun.started_at.desc())
        run = connection.execute(newest.limit(1)).first()
    if run is None:
        return None
    links = _links(engine, run.id)
    return RunOutcome(run.state == RunState.SUCCEEDED, links, _conflicts(engine))


def _links(engine: Engine, run_id: str) -> dict[Direction, LinkOutcome]:
    of_run = select(Transmission.__table__).where(Transmission.run_id == run_id)
    with engine.connect() as connection:
        return {Direction(row.direction): _link(row) for row in connection.execute(of_run)}


def _link(row: Any) -> LinkOutcome:
    tables = tuple(TableReport.model_validate(table) for table in row.tables)
    return LinkOutcome(row.source, row.target, tables, row.seconds, row.bytes)


def _conflicts(engine: Engine) -> tuple[Decided, ...]:
    every = select(Conflict.__table__).order_by(Conflict.table_name, Conflict.conflict_type, Conflict.id)
    with engine.connect() as connection:
        return tuple(_decided(row) for row in connection.execute(every))


def _decided(row: Any) -> Decided:
    return Decided(
        table=row.table_name,
        key=tuple(row.key),
        type=ConflictType(row.conflict_type),
        direction=Direction(row.link.rpartition("/")[2]),
        reason=row.reason,
        winner=row.winner_site,
        loser=row.loser_site,
        winner_row=row.winner_row,
        loser_row=row.loser_row,
        later_by=(row.winner_version["changed_at"] - row.loser_version["changed_at"]) / 1_000_000,
    )
