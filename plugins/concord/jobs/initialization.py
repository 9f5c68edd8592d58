"""How a pair of sites gets its common history: declared equal, loaded, merged, or brought back (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from concord.jobs.link import LinkJob
from concord.jobs.site import Credentials
from concord.tables.privacy import PRIVATE


class How(StrEnum):
    """The choices of a person."""

    AUTO = "auto"  #: equal where the content is, load where one side is empty, reinitialize who is stale
    EQUAL = "equal"
    LOAD = "load"
    MERGE = "merge"
    REINITIALIZE = "reinitialize"


class InitializationJob(BaseModel):
    """Everything an initialization needs, handed to the Spark driver in a file of mode 0600."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    link: LinkJob  #: the pair's forward link; `chosen` names the tables to initialize
    how: How = How.AUTO
    named: str | None = None  #: the site whose rows hold where versions do not decide: `from`
    accept_restored: bool = False
    installers: Mapping[str, Credentials] = Field(
        default_factory=dict
    )  #: by site, where a restored one is accepted, or indexes are built late
    late_indexes: bool = False
    chunk_rows: int = Field(default=50_000, ge=1)
    max_errors: int = Field(default=100, ge=0)


class RowError(BaseModel):
    """A row that the other site would not take, and what its database said."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    site: str
    table: str
    key: tuple[str, ...]  #: ranges go on from it: kept as it is
    reason: str
    private: bool = False  #: no message tells the key

    @property
    def name(self) -> str:
        return PRIVATE if self.private else ", ".join(self.key)


class TableInitialization(BaseModel):
    """The outcome of one table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    how: How
    rows: int = 0  #: rows and tombstones that were looked at; of an equal table its rows
    written: Mapping[str, int] = Field(default_factory=dict)  #: site → rows written there
    conflicts: int = 0
    errors: tuple[RowError, ...] = ()
    notices: tuple[str, ...] = ()  #: numbers that both sites will hand out from here on


class InitializationReport(BaseModel):
    """The outcome of every table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    synchronization: str
    tables: tuple[TableInitialization, ...] = ()
    seconds: float = 0.0
