"""The tables of a publication as a run finds them: which columns the log brings, in which order and form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.log.pgoutput import Relation
from concord.tables.replication_set import TableName


class Kind(StrEnum):
    """The content of a published table."""

    ROWS = "rows"  #: users' own
    VERSIONS = "versions"  #: the shadow table of those, where updates are queued
    COMPENSATIONS = "compensations"  #: rows that a subscriber takes back
    CALLS = "calls"  #: of procedures, in place of the rows that these change


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table at the publisher."""

    name: str  #: in the replication set
    table: Table
    key: tuple[str, ...]
    images: bool = False  #: rows as they were are replayed, too (S2-24)
    travelling: frozenset[str] | None = None  #: the columns that are replicated; None is all
    where: str | None = None  #: SQL: the rows that are replicated; None is all
    shared: bool = False  #: another publication needs this table's rows as they were
    joined: bool = False  #: a mapping makes one value of several, of which an update may send one alone
    kind: Kind = Kind.ROWS
    altered: bool = False  #: its columns are those of the log that waits; it has others by now
    computed: bool = False  #: the log brings stored generated columns, too (`generated_columns`)

    @property
    def full(self) -> bool:
        """The log brings rows as they were: its replica identity is FULL. A filter must see them (T18)."""
        return self.images or self.where is not None or self.shared or self.joined

    @property
    def listed(self) -> bool:
        """The publication lists its columns."""
        return self.travelling is not None and not self.full and not self.altered

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those that are replicated."""
        return self._chosen(self.table.sent)

    @property
    def logged(self) -> tuple[Column, ...]:
        """Those that the log brings: PostgreSQL takes no list of columns where the replica identity is FULL."""
        if self.listed:
            return self.columns
        if self.altered or self.computed:
            return tuple(column for column in self.table.columns if not column.virtual)
        return self.table.sent

    @property
    def cut(self) -> tuple[int, ...] | None:
        """Where `columns` stand among `logged`; None where they are the same."""
        if len(self.columns) == len(self.logged):
            return None
        return tuple(place for place, column in enumerate(self.logged) if column in self.columns)

    def is_logged_as(self, relation: Relation) -> bool:
        """Has the log the columns that it brings, of their types? The lengths of values may differ."""
        logged = [(each.name, each.type_oid) for each in relation.columns]
        return logged == [(column.name, column.type_oid) for column in self.logged]

    def _chosen(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        wanted = self.travelling
        return columns if wanted is None else tuple(each for each in columns if each.name in wanted)

    @property
    def before(self) -> tuple[str, ...]:
        """The columns whose values before an operation are staged: all, or the key."""
        return tuple(column.name for column in self.columns) if self.images else self.key

    @property
    def before_places(self) -> tuple[int, ...]:
        """Where these stand among `columns`."""
        return self._places_of(self.before)

    @property
    def key_places(self) -> tuple[int, ...]:
        return self._places_of(self.key)

    def _places_of(self, wanted: tuple[str, ...]) -> tuple[int, ...]:
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in wanted)


@dataclass(frozen=True, slots=True)
class Published:
    """All of them, in the order of the replication set."""

    tables: tuple[PublishedTable, ...]
    as_text: bool = False  #: its values were captured as text, or are mapped
    carried: tuple[TableName, ...] = ()  #: the procedures whose calls travel
    interruptions: Mapping[int, int] = field(
        default_factory=dict
    )  #: of the tables' capture, by oid, where there were any
    interrupted_own: tuple[
        str, ...
    ] = ()  #: the same of Concord's own tables, each by all that makes it this one

    #: The oids of the tables that are being copied: none of their operations is read.
    left_out: frozenset[int] = frozenset()

    @property
    def binary(self) -> bool:
        """Does every server read the values that another one writes in binary? Else they travel as exact text."""
        return not self.as_text and all(
            column.type.is_alike_in_binary for each in self.tables for column in each.columns
        )

    def identity(self, table: Table) -> str:
        """Of a table whose operations were captured all the while."""
        count = self.interruptions.get(table.oid, 0)
        return f"{table.oid}:{count}" if count else str(table.oid)

    @property
    def places(self) -> dict[int, int]:
        """By a table's oid, as the log names it: those of which operations are read."""
        oids = [each.table.oid for each in self.tables]
        return {oid: place for place, oid in enumerate(oids) if oid not in self.left_out}

    def without(self, names: Collection[str]) -> Published:
        """The same, and no operation is read of these tables."""
        return replace(self, left_out=frozenset(each.table.oid for each in self.tables if each.name in names))
