"""Constraints across rows, verified when all tables are in. Chunks come in the order of their keys, and parents may
come after their children (rule 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.catalogue import ForeignKey
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites.ends import Source, Target
from concord.jobs.initialization import RowError
from concord.tables.privacy import PRIVATE
from concord.tables.replication_set import TableName

End = Source | Target
Shapes = Mapping[str, Shape]


def violations(
    site: tuple[End, Shapes], other: tuple[End, Shapes], loaded: Sequence[str], most: int
) -> list[RowError]:
    """Rows of the site's `loaded` tables without their parents, and values twice in a deferrable unique key; at most
    `most`. Both ends come with the shapes of all tables of the pair.

    A parent that stands at the other site came after its table was copied, or is not copied: the first run brings it.
    """
    (end, ours), elsewhere = site, other[1]
    shapes = [ours[name] for name in loaded]
    by_table = {shape.table.name: shape for shape in ours.values()}
    found: list[RowError] = []
    for shape in shapes:
        for foreign_key in shape.table.foreign_keys:
            parent = by_table.get(foreign_key.parent)
            theirs = elsewhere.get(parent.name) if parent else None
            there = (other[0].connection, theirs) if theirs else None
            found += _orphans(end, shape, foreign_key, there, most - len(found))
        for unique in shape.table.deferrable_unique:
            found += _twice(end, shape, unique, most - len(found))
    return found[:most]


def _orphans(
    end: End, shape: Shape, foreign_key: ForeignKey, parent: tuple[Connection, Shape] | None, most: int
) -> Iterator[RowError]:
    columns = [quote(name) for name in foreign_key.columns]
    given = " AND ".join(f"c.{column} IS NOT NULL" for column in columns)
    same = " AND ".join(
        f"p.{quote(theirs)} = c.{quote(ours)}"
        for ours, theirs in zip(foreign_key.columns, foreign_key.referenced, strict=True)
    )
    texts = [shape.table.column(name).type.exact(f"c.{quote(name)}") for name in foreign_key.columns]
    key = ", ".join(column.type.exact(f"c.{column.sql}") for column in shape.key)
    orphans = rows(
        end.connection,
        f"SELECT ARRAY[{key}], ARRAY[{', '.join(texts)}] FROM {shape.table.sql} c WHERE {given} AND NOT EXISTS"
        f" (SELECT 1 FROM {_sql(foreign_key.parent)} p WHERE {same})",
    )
    coming = _at_other_site(parent, foreign_key, {tuple(values) for _, values in orphans})
    lost = [(key, values) for key, values in orphans if tuple(values) not in coming]
    for key_texts, values in lost[: max(0, most)]:
        yield RowError(
            site=end.access.name,
            table=shape.name,
            key=tuple(key_texts),
            private=shape.key_is_private,
            reason=f"refers by {foreign_key.name} to a row of {foreign_key.parent} that is at neither site"
            f" ({', '.join(_shown(values, private=_refers_privately(foreign_key, shape, parent)))})",
        )


def _at_other_site(
    parent: tuple[Connection, Shape] | None, foreign_key: ForeignKey, wanted: set[tuple[str, ...]]
) -> Mapping[tuple[str, ...], bool]:
    """Which parents the other site holds."""
    if parent is None or not wanted:
        return {}
    connection, shape = parent
    known = {column.name for column in shape.table.columns}
    if not set(foreign_key.referenced) <= known:
        return {}
    columns = [shape.table.column(name) for name in foreign_key.referenced]
    listed = ", ".join(
        "(" + ", ".join(f"{literal(t)}::{c.type.sql}" for t, c in zip(texts, columns, strict=True)) + ")"
        for texts in wanted
    )
    texts = ", ".join(column.type.exact(f"p.{column.sql}") for column in columns)
    found = rows(
        connection,
        f"SELECT {texts} FROM {shape.table.sql} p WHERE ({', '.join(f'p.{c.sql}' for c in columns)}) IN ({listed})",
    )
    return {tuple(each): True for each in found}


def _twice(end: End, shape: Shape, unique: Sequence[str], most: int) -> Iterator[RowError]:
    columns = ", ".join(quote(name) for name in unique)
    given = " AND ".join(f"{quote(name)} IS NOT NULL" for name in unique)
    texts = ", ".join(shape.table.column(name).type.exact(quote(name)) for name in unique)
    found = rows(
        end.connection,
        f"SELECT ARRAY[{texts}] FROM {shape.table.sql} WHERE {given} GROUP BY {columns} HAVING count(*) > 1"
        f" LIMIT {max(0, most)}",
    )
    for (values,) in found:
        reason = f"the same value twice in its unique ({', '.join(unique)})"
        yield RowError(
            site=end.access.name,
            table=shape.name,
            key=tuple(values),
            private=not shape.private.isdisjoint(unique),
            reason=reason,
        )


def _shown(texts: Sequence[str], *, private: bool) -> tuple[str, ...]:
    return (PRIVATE,) if private else tuple(texts)


def _refers_privately(key: ForeignKey, child: Shape, parent: tuple[Connection, Shape] | None) -> bool:
    theirs = parent is not None and not parent[1].private.isdisjoint(key.referenced)
    return theirs or not child.private.isdisjoint(key.columns)


def _sql(name: TableName) -> str:
    return qualified(name.schema_name, name.name)
