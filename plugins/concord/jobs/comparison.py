"""Do two sites hold the same rows? A comparison's orders, and its findings."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.link import LinkJob
from concord.jobs.replication import ReplicationJob

#: Differences kept with both rows for each table; the counts are exact however many there are.
KEPT = 1_000


class Repair(StrEnum):
    """The answer to differences: nothing, a plan, or the plan."""

    NONE = "none"
    PLAN = "plan"
    APPLY = "apply"


class CompareJob(BaseModel):
    """Everything a comparison needs, handed to the Spark driver in a file of mode 0600."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    link: LinkJob  #: the pair's forward link, with the tables to compare as its `chosen`
    repair: Repair = Repair.NONE
    prefer: Literal["source", "target"] | None = None  #: whose row stays where no version decides
    kept: int = Field(default=KEPT, ge=0)

    @property
    def related(self) -> LinkJob:
        """The pair's reverse link."""
        link = self.link
        ends = {"source": link.target, "target": link.source}
        return link.model_copy(update={"direction": link.direction.related, **ends})


class CompareReplicationJob(BaseModel):
    """Everything that a comparison of a replication's two sites needs, handed to its driver."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    forward: ReplicationJob
    reverse: ReplicationJob | None = None  #: where both sites write
    chosen: tuple[str, ...] | None = None  #: tables; None is all
    kept: int = Field(default=KEPT, ge=0)


class Kind(StrEnum):
    """The difference of a key."""

    CONTENT = "content"  #: both sites have a row, and not the same one
    VERSION = "version"  #: the same row, or none at either site, under different versions
    ONLY_SOURCE = "only_source"
    ONLY_TARGET = "only_target"


class Difference(BaseModel):
    """One key that differs, with what each site has of it; rows as exact texts, None where there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    key: tuple[str, ...]
    kind: Kind
    source_row: Mapping[str, Any] | None = None
    target_row: Mapping[str, Any] | None = None
    source_version: Mapping[str, Any] | None = None  #: None: the row has never been changed
    target_version: Mapping[str, Any] | None = None
    remedy: str | None = None  #: what a repair would do, or has done


class TableComparison(BaseModel):
    """One table, counted in one consistent cut of each site.

    `in_flight` keys differ only because a link has not carried them yet; they are in none of the other counts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    source_rows: int
    target_rows: int
    equal: int
    differing: int  #: rows whose content differs
    versions: int  #: keys of which only the version differs
    only_source: int
    only_target: int
    in_flight: int
    remedies: Mapping[str, int] = Field(default_factory=dict)  #: by deed: how many keys it is planned for
    written: Mapping[str, int] = Field(
        default_factory=dict
    )  #: by site: rows or versions a repair wrote there

    @property
    def differences(self) -> int:
        return self.differing + self.versions + self.only_source + self.only_target

    @property
    def proves_equal(self) -> bool:
        """Is there no key that differs, and none that may?"""
        return not (self.differences or self.in_flight)


class CompareReport(BaseModel):
    """The findings of one comparison, as the repository keeps them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    comparison: str
    synchronization: str
    source: str
    target: str
    repair: Repair = Repair.NONE
    tables: tuple[TableComparison, ...] = ()
    stopped: Mapping[str, str] = Field(default_factory=dict)  #: tables left out, each with the reason
    differences: tuple[Difference, ...] = ()  #: at most `kept` of each table
    seconds: Mapping[str, float] = Field(default_factory=dict)

    @property
    def found(self) -> int:
        """How many keys differ, in all tables."""
        return sum(table.differences for table in self.tables)
