"""The repository's tables, as typed declarative models."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, CheckConstraint, ForeignKey, Index, MetaData, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from concord.repository.utc_time import UtcDateTime

#: The outcomes of an acquired row. They add up to `acquired` (rule 11).
OUTCOMES = ("applied", "converged", "superseded", "lost", "filtered", "held", "quarantined")

NAMING_CONVENTION = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}


class RunState(StrEnum):
    """`released`: the lease ended or passed on before the run said how it went."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RELEASED = "released"


class TransmissionState(StrEnum):
    """A transmission is recorded when it has ended; while it goes on, its run is `running`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


def _one_of(column: str, words: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


class Record(DeclarativeBase):
    """A row of the repository."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: BigInteger,
        datetime: UtcDateTime,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON(none_as_null=True),
    }


class Synchronization(Record):
    """A pair of related links: its lease, and when it was last done."""

    __tablename__ = "synchronization"

    name: Mapped[str] = mapped_column(primary_key=True)
    epoch: Mapped[int]  #: the newest fencing token; 0 before the first
    owner: Mapped[str | None]  #: who holds the lease; None when nobody does
    lease_acquired_at: Mapped[datetime | None]
    lease_expires_at: Mapped[datetime | None]
    last_started_at: Mapped[datetime | None]  #: start of the last completed synchronization (S1-18, S1-20)


class Link(Record):
    """One direction of a synchronization."""

    __tablename__ = "link"
    __table_args__ = (CheckConstraint("direction IN ('forward', 'reverse')", name="direction"),)

    synchronization: Mapped[str] = mapped_column(ForeignKey("synchronization.name"), primary_key=True)
    direction: Mapped[str] = mapped_column(primary_key=True)
    source: Mapped[str]
    target: Mapped[str]
    last_started_at: Mapped[datetime | None]  #: start of the last completed transmission


class SynchronizationRun(Record):
    """One run of a synchronization under one epoch."""

    __tablename__ = "synchronization_run"
    __table_args__ = (UniqueConstraint("synchronization", "epoch"), _one_of("state", RunState))

    id: Mapped[str] = mapped_column(primary_key=True)
    synchronization: Mapped[str] = mapped_column(ForeignKey("synchronization.name"))
    epoch: Mapped[int]
    owner: Mapped[str]
    dag_run_id: Mapped[str]
    run_type: Mapped[str]  #: Airflow's word: scheduled, manual, asset_triggered, backfill
    direction: Mapped[str | None]  #: the only link that runs; None is both
    tables: Mapped[list[Any] | None]  #: the only tables carried; None is all
    plan_only: Mapped[bool]
    interval_start: Mapped[datetime | None]  #: of a backfill: the first moment whose versions it carries
    interval_end: Mapped[datetime | None]  #: and the first whose versions it does not
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    state: Mapped[str]
    message: Mapped[str | None]


class Transmission(Record):
    """One run of one link: rows per outcome, bytes, seconds per step, error."""

    __tablename__ = "transmission"
    __table_args__ = (
        _one_of("state", TransmissionState),
        CheckConstraint(f"state <> 'succeeded' OR acquired = {' + '.join(OUTCOMES)}", name="adds_up"),
        Index(None, "run_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("synchronization_run.id"))
    direction: Mapped[str]
    source: Mapped[str]
    target: Mapped[str]
    plan_only: Mapped[bool]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime]
    state: Mapped[str]
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    bytes: Mapped[int]
    seconds: Mapped[dict[str, Any]] = mapped_column(JSON)  #: step → seconds
    tables: Mapped[list[Any]] = mapped_column(JSON)  #: one `TableReport` per table
    acquired: Mapped[int]
    applied: Mapped[int]
    converged: Mapped[int]
    superseded: Mapped[int]
    lost: Mapped[int]
    filtered: Mapped[int] = mapped_column(server_default="0")
    held: Mapped[int] = mapped_column(server_default="0")
    quarantined: Mapped[int] = mapped_column(server_default="0")
    conflicts: Mapped[int]
    not_owned: Mapped[int] = mapped_column(server_default="0")
    inserted_for_update: Mapped[int] = mapped_column(server_default="0")
    lag: Mapped[float | None]  #: seconds, of a success that carried all its link had to send
    rows_per_second: Mapped[float | None]  #: the same


class MissedObjective(Record):
    """A part of a link's objective that is missed, and of which people have heard; it goes once it is kept again."""

    __tablename__ = "missed_objective"

    synchronization: Mapped[str] = mapped_column(primary_key=True)
    direction: Mapped[str] = mapped_column(primary_key=True)
    aim: Mapped[str] = mapped_column(primary_key=True)  #: `rules.objective.Aim`
    since: Mapped[datetime]


class Conflict(Record):
    """Two versions of one key, neither of which included the other; collected exactly once (F26).

    It refers to nothing by foreign key: a site's log outlives a lost repository.
    """

    __tablename__ = "conflict"
    __table_args__ = (Index(None, "decided_at"), Index(None, "synchronization", "table_name"))

    id: Mapped[str] = mapped_column(primary_key=True)  #: `versions.conflict.conflict_id`
    synchronization: Mapped[str]
    link: Mapped[str]
    transmission: Mapped[str]
    table_name: Mapped[str]
    key: Mapped[list[Any]] = mapped_column(JSON)
    conflict_type: Mapped[str]
    resolver: Mapped[str]
    reason: Mapped[str]
    winner_site: Mapped[str]
    loser_site: Mapped[str]
    winner_version: Mapped[dict[str, Any]] = mapped_column(JSON)
    loser_version: Mapped[dict[str, Any]] = mapped_column(JSON)
    winner_row: Mapped[dict[str, Any] | None]  #: None when the winner is a delete
    loser_row: Mapped[dict[str, Any] | None]
    withheld: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    decided_at: Mapped[datetime]
    site: Mapped[str]  #: where it was decided
    overturned_at: Mapped[datetime | None]
    overturned_by: Mapped[str | None]
    overturned_version: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class Comparison(Record):
    """One comparison of a pair: what was counted, table by table."""

    __tablename__ = "comparison"
    __table_args__ = (Index(None, "ended_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    synchronization: Mapped[str]
    source: Mapped[str]
    target: Mapped[str]
    repair: Mapped[str]  #: none, plan or apply
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime]
    differences: Mapped[int]  #: keys that differed, in all tables
    in_flight: Mapped[int]
    tables: Mapped[list[Any]] = mapped_column(JSON)  #: one `TableComparison` per table
    seconds: Mapped[dict[str, Any]] = mapped_column(JSON)  #: step → seconds


class Difference(Record):
    """One key that differed, with both rows and both versions; the first ones of each table (`KEPT`)."""

    __tablename__ = "difference"

    comparison_id: Mapped[str] = mapped_column(
        ForeignKey("comparison.id", ondelete="CASCADE"), primary_key=True
    )
    place: Mapped[int] = mapped_column(primary_key=True)  #: 0, 1, … in the order of tables and keys
    table_name: Mapped[str]
    key: Mapped[list[Any]] = mapped_column(JSON)
    kind: Mapped[str]  #: content, version, only_source, only_target
    source_row: Mapped[dict[str, Any] | None]
    target_row: Mapped[dict[str, Any] | None]
    source_version: Mapped[dict[str, Any] | None]  #: None: the row has never been changed there
    target_version: Mapped[dict[str, Any] | None]
    remedy: Mapped[str | None]  #: what a repair does about it


class Hold(Record):
    """Why a link waits for a person, and what the person said; kept after its end (`repository.holds`)."""

    __tablename__ = "hold"
    __table_args__ = (Index(None, "synchronization", "ended_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    synchronization: Mapped[str]
    direction: Mapped[str]
    table_name: Mapped[str]
    kind: Mapped[str]  #: `rules.brake.Kind`
    seen: Mapped[int]  #: rows that would go, or change
    table_rows: Mapped[int]  #: of the table
    since: Mapped[str]  #: the session that the held transmission went on from
    run_id: Mapped[str]  #: the newest run that was held by it
    held_at: Mapped[datetime]  #: when that began
    approved_at: Mapped[datetime | None]
    approved_by: Mapped[str | None]
    approved_up_to: Mapped[int | None]  #: rows
    ended_at: Mapped[datetime | None]  #: used, overtaken by another one, or no longer needed


class Maintenance(Record):
    """When a housekeeping job last completed, so that an overdue one runs once (S4-162)."""

    __tablename__ = "maintenance"

    name: Mapped[str] = mapped_column(primary_key=True)
    last_completed_at: Mapped[datetime]
