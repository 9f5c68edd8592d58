"""Keys across rows, as the catalogue describes them: foreign keys, and unique constraints on columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concord.databases.postgresql.facts.comparison import Comparison, comparison_of, matches
from concord.tables.replication_set import TableName


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key, seen from the table that refers."""

    name: str
    child: TableName
    columns: tuple[str, ...]
    parent: TableName
    referenced: tuple[str, ...]
    on_delete: str = "a"  #: pg_constraint.confdeltype
    set_columns: tuple[str, ...] = ()  #: those that ON DELETE SET NULL names; empty is all of them
    match_full: bool = False
    validated: bool = True  #: False (NOT VALID): rows from before it may refer to nothing
    #: A value of the parent's on the left, one of the child's on the right; column by column.
    comparisons: tuple[Comparison, ...] = ()
    among_parents: tuple[Comparison, ...] = ()  #: likewise, of two values of the parent's column

    def refers(self, parent: str, child: str) -> str:
        """SQL: the row `child` refers to the row `parent`."""
        return matches(self.comparisons, parent, self.referenced, child, self.columns)

    def same_parent(self, one: str, other: str) -> str:
        """SQL: two rows of the parent have the same values in what is referred to."""
        return matches(self.among_parents, one, self.referenced, other, self.referenced)


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """A unique constraint on columns."""

    columns: tuple[str, ...]
    comparisons: tuple[Comparison, ...]

    def same(self, one: str, other: str) -> str:
        """SQL: two rows have the same values."""
        return matches(self.comparisons, one, self.columns, other, self.columns)

    def __str__(self) -> str:
        return f"({', '.join(self.columns)})"


def foreign_key_of(row: Mapping[str, Any]) -> ForeignKey:
    """By a row of the catalogue's answer."""
    child, parent = row["child"], row["parent"]
    return ForeignKey(
        name=row["name"],
        child=TableName(schema_name=child["schema_name"], name=child["name"]),
        columns=_named(child, row["columns"]),
        parent=TableName(schema_name=parent["schema_name"], name=parent["name"]),
        referenced=_named(parent, row["referenced"]),
        on_delete=row["on_delete"],
        set_columns=_named(child, row["set_columns"] or ()),
        match_full=row["match_full"],
        validated=row["validated"],
        comparisons=tuple(map(comparison_of, row["comparisons"])),
        among_parents=tuple(map(comparison_of, row["among_parents"])),
    )


def _named(end: Mapping[str, Any], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(end["columns"][str(place)] for place in places)
