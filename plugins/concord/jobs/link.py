"""A replication link: one direction, source to target, over one replication set; its job and its report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.site import SiteAccess
from concord.rules.brake import Approval, Hold
from concord.tables.replication_set import ReplicatedTable
from concord.values.interval import Interval

#: Changed rows from which Spark carries them. Its start is a tenth of such a run; of a smaller one it is more. The
#: driver reads and stages as fast on one machine (docs/benchmarks.md).
SPARK_FROM = 1_000


class Direction(StrEnum):
    """Which of the pair's two links: forward goes from the configured source to the target."""

    FORWARD = "forward"
    REVERSE = "reverse"

    @property
    def related(self) -> Direction:
        """The other link of the pair (S1-12)."""
        return Direction.REVERSE if self is Direction.FORWARD else Direction.FORWARD


def link_name(synchronization: str, direction: Direction) -> str:
    """`london_capetown/forward`: what both ends call the link in their state."""
    return f"{synchronization}/{direction}"


class LinkJob(BaseModel):
    """Everything one transmission needs, handed to the Spark driver in a file of mode 0600."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    synchronization: str
    direction: Direction
    transmission: str  #: 32 hexadecimal digits; names the staging tables
    epoch: int
    source: SiteAccess
    target: SiteAccess
    tables: tuple[ReplicatedTable, ...]
    chosen: tuple[str, ...] | None = None  #: names of the tables to carry; None is all
    plan_only: bool = False
    max_quarantined: int = 1000  #: rows that the target may refuse before the link stops; 0: none
    spark_from: int = (
        SPARK_FROM  #: fewer rows of unmapped tables are carried by the driver itself; 0: Spark always does
    )
    interval: Interval | None = None  #: a backfill of these versions; None is what arrived since the position
    approvals: tuple[Approval, ...] = ()  #: what a person lets pass the brakes
    priorities: Mapping[str, int] = Field(
        default_factory=dict
    )  #: of every configured site; the higher wins ties

    @property
    def link(self) -> str:
        return link_name(self.synchronization, self.direction)

    @property
    def moves_positions(self) -> bool:
        """Does this transmission let the link go on from here? (rule 1)"""
        return not self.plan_only and self.interval is None

    @property
    def ends(self) -> tuple[str, str]:
        """Source and target, by name."""
        return (self.source.name, self.target.name)

    @property
    def related_link(self) -> str:
        return link_name(self.synchronization, self.direction.related)


#: Of a table's report: rows by outcome, then what is said of some of them, in the order in which people ask.
COUNTS = (
    "acquired",
    "applied",
    "merged",
    "restored",
    "converged",
    "superseded",
    "lost",
    "filtered",
    "held",
    "quarantined",
    "conflicts",
    "not_owned",
    "inserted_for_update",
)


class TableReport(BaseModel):
    """Rows of one table by outcome: acquired = the sum of those from applied to quarantined (rule 11)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    acquired: int = 0
    applied: int = 0
    converged: int = 0
    superseded: int = 0
    lost: int = 0
    filtered: int = 0  #: outside the row filter, and not shared with the target before: nothing is done there
    held: int = 0  #: wait for a person's decision, both rows untouched
    quarantined: int = 0  #: wait since the target would not take them
    retried: int = 0  #: how many of the acquired had waited at the target
    conflicts: int = 0  #: how many of the applied and the lost were decided by a resolver
    not_owned: int = 0  #: how many were last changed at the source although another site owns the row
    merged: int = 0  #: how many of the applied are new rows, made of both sites' by a resolver
    restored: int = 0  #: how many of the applied were put back by a backfill
    inserted_for_update: int = 0  #: how many of the applied are updates that found neither row nor tombstone
    keys_inserted: tuple[str, ...] = Field(
        default=(), exclude=True
    )  #: of some of these, for the driver's log
    reinitializing: int = (
        0  #: how many of the conflicts ask to bring the table back to the publisher's copy (S3-21)
    )
    tolerance: float | None = None  #: seconds, where changes are found by the application's marks (S4-074)
    stopped: str | None = None  #: why the table was left out of the run: nothing of it was written

    @property
    def adds_up(self) -> bool:
        settled = self.applied + self.converged + self.superseded + self.lost + self.filtered
        return self.acquired == settled + self.held + self.quarantined


class Transmission(Protocol):
    """The words that the job of every transmission says of it, a link's and a snapshot's."""

    @property
    def transmission(self) -> str: ...

    @property
    def synchronization(self) -> str: ...

    @property
    def direction(self) -> Direction: ...

    @property
    def source(self) -> SiteAccess: ...

    @property
    def target(self) -> SiteAccess: ...

    @property
    def plan_only(self) -> bool: ...


#: Steps in which rows reach the target; reading goes on beside them.
WRITING = ("stage", "write", "replay")


class TransmissionReport(BaseModel):
    """The acts of one run of one link, as the repository records them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transmission: str
    synchronization: str
    direction: Direction
    source: str
    target: str
    plan_only: bool = False
    tables: tuple[TableReport, ...] = ()
    seconds: Mapping[str, float] = Field(default_factory=dict)
    bytes: int = 0
    error_code: str | None = None
    error_message: str | None = None
    lag: float | None = (
        None  #: seconds that a change waited at most until it was at the target; None: unknown
    )
    holds: tuple[Hold, ...] = ()  #: why tables that were left out wait for a person

    @classmethod
    def of(cls, job: Transmission, **facts: Any) -> TransmissionReport:
        """The report of a job: who transmitted what from where to where, and what came of it."""
        return cls(
            transmission=job.transmission,
            synchronization=job.synchronization,
            direction=job.direction,
            source=job.source.name,
            target=job.target.name,
            plan_only=job.plan_only,
            **facts,
        )

    @property
    def stopped(self) -> dict[str, str]:
        """The tables that were left out, each with the reason."""
        return {table.table: table.stopped for table in self.tables if table.stopped is not None}

    @property
    def rows_per_second(self) -> float | None:
        """Of the time in which rows were written (S2-10); None where none were."""
        rows, seconds = self.total("acquired"), sum(self.seconds.get(step, 0.0) for step in WRITING)
        return rows / seconds if rows and seconds else None

    def total(self, outcome: str) -> int:
        return sum(int(getattr(table, outcome)) for table in self.tables)
