"""A read-only copy of a query at another site: its definition, its job, its report (S4-005 to S4-026)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.link import Direction, TableReport, link_name
from concord.jobs.site import SiteAccess
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.row_filter_text import Where


class SnapshotKind(StrEnum):
    """How a refresh finds out what changed."""

    INCREMENTAL = "incremental"  #: the source's shadow table says so
    NON_INCREMENTAL = "non_incremental"  #: the query is evaluated again, and its whole content compared


def snapshot_name(name: str) -> str:
    """The name that lease, epoch and status give it: no synchronization can have this name, since `/` is none of
    its letters."""
    return f"snapshot/{name}"


class SnapshotDefinition(BaseModel):
    """`SELECT columns FROM relation WHERE where` at the source, kept as `table` at the target (S4-010, S4-022)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: SnapshotKind
    source: str
    target: str
    relation: TableName  #: a table of the source; for a non-incremental snapshot also a view
    columns: tuple[str, ...] | None = None  #: None is all
    where: Where | None = None
    table: TableName  #: at the target
    tracked: ReplicatedTable | None = None  #: the relation as its changes are captured; incremental only

    @property
    def incremental(self) -> bool:
        return self.kind is SnapshotKind.INCREMENTAL

    @property
    def fingerprint(self) -> str:
        """Changes with what the snapshot holds, so that a changed definition is filled anew (rule 9)."""
        said = self.model_dump_json(include={"source", "relation", "columns", "where", "table"})
        return hashlib.sha256(said.encode()).hexdigest()[:32]


class SnapshotJob(BaseModel):
    """Everything one refresh needs, handed to the Spark driver in a file of mode 0600."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: SnapshotDefinition
    transmission: str  #: 32 hexadecimal digits; names the staging table
    epoch: int
    source: SiteAccess
    target: SiteAccess
    full: bool = False  #: refresh an incremental snapshot as a non-incremental one (S4-025)
    plan_only: bool = False

    @property
    def synchronization(self) -> str:
        return snapshot_name(self.snapshot.name)

    @property
    def direction(self) -> Direction:
        """One way only (S4-008)."""
        return Direction.FORWARD

    @property
    def link(self) -> str:
        return link_name(self.synchronization, self.direction)


class SnapshotReport(BaseModel):
    """The effect of one refresh at the target. A full one counts a changed row as one deleted and one inserted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transmission: str
    full: bool
    plan_only: bool = False
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    seconds: Mapping[str, float] = Field(default_factory=dict)
    bytes: int = 0

    @property
    def written(self) -> int:
        return self.inserted + self.updated + self.deleted

    def of_table(self, table: str) -> RefreshedTable:
        """The same as the repository records it: acquired = applied + converged (rule 11)."""
        return RefreshedTable(
            table=table,
            acquired=self.written + self.unchanged,
            applied=self.written,
            converged=self.unchanged,
            full=self.full,
            inserted=self.inserted,
            updated=self.updated,
            deleted=self.deleted,
        )


class RefreshedTable(TableReport):
    """The destination of a snapshot in a transmission: which writes the applied rows were."""

    full: bool = False
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
