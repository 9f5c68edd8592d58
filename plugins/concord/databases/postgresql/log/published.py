"""The tables of a publication as a run finds them: which columns the log brings, in which order and form."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.postgresql.facts.catalogue import Column, Table


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table at the publisher."""

    name: str  #: in the replication set
    table: Table
    key: tuple[str, ...]
    images: bool = False  #: the log brings rows as they were, too: its replica identity is FULL (S2-24)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.sent

    @property
    def before(self) -> tuple[str, ...]:
        """The columns whose values before an operation are staged: all, or the key."""
        return tuple(column.name for column in self.columns) if self.images else self.key

    @property
    def before_places(self) -> tuple[int, ...]:
        """Where these stand among `columns`."""
        names = [column.name for column in self.columns]
        return tuple(names.index(name) for name in self.before)


@dataclass(frozen=True, slots=True)
class Published:
    """All of them, in the order of the replication set."""

    tables: tuple[PublishedTable, ...]

    @property
    def binary(self) -> bool:
        """Does every server read the values that another one writes in binary? Else they travel as exact text."""
        return all(column.type.is_alike_in_binary for each in self.tables for column in each.columns)

    @property
    def places(self) -> dict[int, int]:
        """By a table's oid, as the log names it."""
        return {each.table.oid: place for place, each in enumerate(self.tables)}
