"""Which columns a snapshot has at one end, how they travel, and how a row is told from another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.rows import row_filter
from concord.databases.postgresql.sites import preflight
from concord.jobs.snapshot import SnapshotDefinition


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a snapshot at its source or at its target, in the same order at both."""

    table: Table
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()  #: empty where rows have no name: all of the content is compared

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def structure(self) -> tuple[tuple[str, str], ...]:
        """Equal at both ends when, and only when, rows of one fit into the other (F86)."""
        return tuple((column.name, column.type.descriptor) for column in self.columns)

    def alias(self, column: Column) -> str:
        """The column's name on the way, where no odd identifier may appear."""
        return f"c{self.columns.index(column)}"

    @property
    def spark_schema(self) -> str:
        """DDL of the rows as they travel; `gone` is a key whose row left the query."""
        columns = [f"{self.alias(column)} {column.type.spark}" for column in self.columns]
        return ", ".join([*columns, "gone boolean"])

    @property
    def staged(self) -> tuple[tuple[str, str], ...]:
        """The staged columns of a row: names, and the types that staging has for them."""
        return (*((self.alias(column), column.type.staging) for column in self.columns), ("gone", "boolean"))

    @property
    def staging_columns(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in (*self.staged, ("attempt", "int8")))

    @property
    def column_list(self) -> str:
        return ", ".join(column.sql for column in self.columns)

    def typed(self) -> str:
        """Select list that turns a staged row back into the table's own types."""
        return ", ".join(f"{c.type.incoming(self.alias(c))} AS {c.sql}" for c in self.columns)

    def digest(self, row: str) -> str:
        """32 bytes that two rows share when, and only when, every value is written alike.

        A record's text form quotes each field, so that no two rows read the same.
        """
        texts = ", ".join(column.type.exact(f"{row}.{column.sql}") for column in self.columns)
        return f"sha256(convert_to(ROW({texts})::text, 'UTF8'))"

    def same_key(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{quote(name)} = {right}.{quote(name)}" for name in self.key)


def source_layout(snapshot: SnapshotDefinition, relation: Table, key: tuple[str, ...]) -> Layout:
    """The query's columns in the relation's order; an incremental snapshot has the key among them (S4-023)."""
    wanted = {*key, *(snapshot.columns or _captured(snapshot, relation))}
    columns = tuple(column for column in relation.columns if column.name in wanted)
    return Layout(relation, columns, key)


def _captured(snapshot: SnapshotDefinition, relation: Table) -> tuple[str, ...]:
    """The columns whose changes an incremental snapshot hears of; all of them for any other."""
    listed = snapshot.tracked.columns_at(snapshot.source) if snapshot.tracked else None
    if listed is None:
        return tuple(column.name for column in relation.columns)
    computed = tuple(column.name for column in relation.columns if column.generated)
    return tuple(listed) + computed


def condition(snapshot: SnapshotDefinition, relation: Table) -> str:
    """Which rows `t` of the relation the snapshot holds; never NULL."""
    return row_filter.condition(snapshot.where, _column_of(relation), "t") if snapshot.where else "true"


def _column_of(relation: Table) -> row_filter.Columns:
    by_name = {column.name: column for column in relation.columns}
    return by_name.get


def source_problems(snapshot: SnapshotDefinition, relation: Table) -> Iterator[str]:
    """Why the relation cannot be the source of the snapshot, each to be read after its name."""
    if relation.kind not in "rvmp":
        yield "is no table and no view; name one"
    if relation.row_security:
        yield "has row-level security, which can hide rows from Concord; disable it"
    if snapshot.tracked is not None and snapshot.tracked.tracking is not None:
        yield "keeps marks of its own, which only links register; make the snapshot non_incremental"
    names, captured = {column.name for column in relation.columns}, _captured(snapshot, relation)
    for name in {*(snapshot.columns or ()), *(snapshot.where.columns if snapshot.where else ())} - {
        *captured
    }:
        if name in names:
            yield f"has the column {name}, which its replication set does not list, so its changes are not captured"
    for name in snapshot.columns or ():
        if name not in names:
            yield f"has no column {name}, which the snapshot names; correct its columns"
    held = [column for column in relation.columns if column.name in (snapshot.columns or captured)]
    for column in held:
        if not column.type.supported:
            yield f"has the column {column.name} of type {column.type.sql}, {column.type.problem}"
    yield from preflight.cast_problems(held)
    if snapshot.where:
        yield from row_filter.problems(snapshot.where, _column_of(relation))


def target_layout(names: tuple[str, ...], table: Table, key: tuple[str, ...]) -> Layout | None:
    """The same columns as the destination has them; None when one is missing."""
    known = {column.name for column in table.columns}
    if not set(names) <= known:
        return None
    return Layout(table, tuple(table.column(name) for name in names), key)


def differences(source: Layout, target: Table, where: str) -> Iterator[str]:
    """How an existing destination does not fit the query, column by column (S4-024); `where` names it."""
    theirs = {column.name: column for column in target.columns if not column.generated}
    for column in source.columns:
        found = theirs.get(column.name)
        if found is None:
            yield f"{where} has no column {column.name}, which the snapshot holds"
        elif found.type.descriptor != column.type.descriptor:
            yield f"{where}: column {column.name} is {found.type.sql}, and {column.type.sql} at the source"
    for name in theirs.keys() - set(source.names):
        yield f"{where} has the column {name}, which the snapshot does not hold; drop it, or add it to columns"
