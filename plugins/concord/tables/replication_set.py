"""The tables kept equal: what each is called at every site, which columns, which key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from concord.rules.brake import Brakes
from concord.rules.hook import Hook
from concord.rules.policy import Policy
from concord.tables.identity import Identity
from concord.tables.manipulation import NOTHING, Manipulation, Rename
from concord.tables.privacy import Treatment
from concord.tables.row_filter_text import Where
from concord.values.identifier import TableName

__all__ = ["Marks", "NotOwned", "ReplicatedTable", "TableName", "chosen"]


class NotOwned(StrEnum):
    """The fate of a change that a site's user makes to a row of another owner (S2-23, S2-28)."""

    COUNT = "count"  #: it travels as any other, and is counted
    REFUSE = "refuse"  #: the user's statement fails at once


class Marks(BaseModel):
    """The application's own marks on every row: when it was changed, whether it is deleted (S1-23, S1-24)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    changed_at: str
    deleted: str
    tolerance: float = Field(default=900.0, gt=0)  #: seconds a mark may be older than its commit (S4-074)
    time_zone: Mapping[str, str] = Field(
        default_factory=dict
    )  #: of sites whose marks carry none: `Africa/Johannesburg`
    view: TableName | None = None  #: the rows that are not deleted, for applications to read (S1-26)


class ReplicatedTable(BaseModel):
    """One table of a replication set: its name at every site, its key, its columns, its conflict policy.

    `key` and `columns` are canonical; `manipulations` says how a site keeps them otherwise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: TableName
    at: Mapping[str, TableName] = Field(default_factory=dict)
    key: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None  #: those that are replicated; None is all
    manipulations: Mapping[str, Manipulation] = Field(default_factory=dict)
    where: Where | None = None  #: the rows that are shared; None is all
    owners: Mapping[str, Where] = Field(default_factory=dict)  #: the rows that each site should change
    not_owned: NotOwned = NotOwned.COUNT  #: the fate of a change to a row of another owner
    policy: Policy = Field(default_factory=Policy)  #: who wins a conflict
    tracking: Marks | None = None  #: None is the shadow table that triggers keep
    by_log: tuple[str, ...] = ()  #: the sites whose log tells of its changes, and no trigger
    captured_only: bool = False  #: the source of incremental snapshots alone: no link writes it
    private: Mapping[str, Treatment] = Field(default_factory=dict)  #: columns no ledger and no message shows
    identity: Identity | None = None  #: None leaves sequences as they are
    hooks: Mapping[str, Hook] = Field(
        default_factory=dict
    )  #: by site: who sees every row before it is written

    brakes: Brakes = Brakes()  #: what a person has to approve

    def braked(self, brakes: Brakes) -> ReplicatedTable:
        """The same table under these brakes."""
        return self.model_copy(update={"brakes": brakes})

    def sharing(self, identity: Identity | None) -> ReplicatedTable:
        """The same table, its numbers shared out between the sites."""
        return self.model_copy(update={"identity": identity})

    def told_by_log(self, sites: Collection[str]) -> ReplicatedTable:
        """The same table, its changes read from the log of these sites; marks of the application tell them
        everywhere."""
        return self if self.tracking else self.model_copy(update={"by_log": tuple(sorted(sites))})

    @property
    def is_private(self) -> bool:
        """Does it have columns that not everybody may read?"""
        return any(each is not Treatment.STORED for each in self.private.values())

    @property
    def keeps_base(self) -> bool:
        """Does some resolver need what a row was before its last edits?"""
        return self.policy.keeps_base and not self.captured_only

    @property
    def name(self) -> str:
        """Its name in reports, positions and the conflict log, at every site."""
        return str(self.table)

    @property
    def filter_text(self) -> str | None:
        """The row filter as a link's state remembers it; None for all rows."""
        return None if self.where is None else str(self.where)

    def at_site(self, site: str) -> TableName:
        return self.at.get(site, self.table)

    def manipulation_at(self, site: str) -> Manipulation:
        return self.manipulations.get(site, NOTHING)

    def joins_values_of(self, site: str) -> bool:
        """Does a column, at this site or at another one, hold several of this site's?"""
        here = self.manipulation_at(site).operations
        others = [each for name, each in self.manipulations.items() if name != site]
        return any(len(each.own) > 1 for each in here) or any(
            len(each.canonical) > 1 for other in others for each in other.operations
        )

    def changes_values(self, *sites: str) -> bool:
        """Does one of these sites keep it otherwise than by other names?"""
        kept = [each for site in sites for each in self.manipulation_at(site).operations]
        return any(not isinstance(each, Rename) for each in kept)

    def key_at(self, site: str) -> tuple[str, ...] | None:
        """The configured key, by the names that a site gives its columns."""
        return None if self.key is None else self.manipulation_at(site).own_names(self.key)

    def columns_at(self, site: str) -> tuple[str, ...] | None:
        """The site's columns that are replicated; None is all."""
        if self.columns is None:
            return None
        manipulation = self.manipulation_at(site)
        return manipulation.own_names(self.columns) + manipulation.constants


def chosen(tables: Sequence[ReplicatedTable], names: Sequence[str] | None) -> tuple[ReplicatedTable, ...]:
    """The named tables, or all of them. Raises KeyError with the first name that is not in the set."""
    if names is None:
        return tuple(tables)
    by_name = {table.name: table for table in tables}
    return tuple(by_name[name] for name in names)
