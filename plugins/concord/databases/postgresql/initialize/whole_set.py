"""Constraints across rows, verified when all tables are in. Chunks come in the order of their keys, and parents may
come after their children (rule 13)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.constraints.references import refers_to
from concord.databases.postgresql.facts.about_table import about
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.keys import ForeignKey, UniqueKey
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
        with about(shape.name, end.access.name, private=bool(shape.private)):
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
    texts = [shape.table.column(name).type.exact(f"c.{quote(name)}") for name in foreign_key.columns]
    key = ", ".join(column.type.exact(f"c.{column.sql}") for column in shape.key)
    orphans = rows(
        end.connection,
        f"SELECT ARRAY[{key}], ARRAY[{', '.join(texts)}] FROM {shape.table.sql} c WHERE {given} AND NOT EXISTS"
        f" (SELECT 1 FROM {_sql(foreign_key.parent)} p WHERE {foreign_key.refers('p', 'c')})",
    )
    coming = _at_other_site(parent, foreign_key, {json.dumps(values) for _, values in orphans})
    lost = [(key, values) for key, values in orphans if json.dumps(values) not in coming]
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
    parent: tuple[Connection, Shape] | None, foreign_key: ForeignKey, wanted: set[str]
) -> set[str]:
    """The wanted values, each a JSON array, of which the other site holds the parent."""
    if parent is None or not wanted:
        return set()
    connection, shape = parent
    known = {column.name for column in shape.table.columns}
    if not set(foreign_key.referenced) <= known:
        return set()
    listed = f"unnest(ARRAY[{', '.join(map(literal, sorted(wanted)))}]) w (vals)"
    same = refers_to(shape, foreign_key, "p", "w.vals")
    found = rows(
        connection,
        f"SELECT w.vals FROM {listed} WHERE EXISTS (SELECT 1 FROM {shape.table.sql} p WHERE {same})",
    )
    return {values for (values,) in found}


def _twice(end: End, shape: Shape, unique: UniqueKey, most: int) -> Iterator[RowError]:
    """GROUP BY compares as a constraint's index does: by the equality of the type, wherever that is defined."""
    columns = ", ".join(quote(name) for name in unique.columns)
    counted = zip(unique.columns, unique.comparisons, strict=True)
    given = " AND ".join(f"{quote(name)} IS NOT NULL" for name, each in counted if not each.nulls_meet)
    texts = ", ".join(shape.table.column(name).type.exact(quote(name)) for name in unique.columns)
    found = rows(
        end.connection,
        f"SELECT ARRAY[{texts}] FROM {shape.table.sql} WHERE {given or 'true'} GROUP BY {columns} HAVING count(*) > 1"
        f" LIMIT {max(0, most)}",
    )
    for (values,) in found:
        reason = f"the same value twice in its unique {unique}"
        yield RowError(
            site=end.access.name,
            table=shape.name,
            key=tuple(values),
            private=not shape.private.isdisjoint(unique.columns),
            reason=reason,
        )


def _shown(texts: Sequence[str], *, private: bool) -> tuple[str, ...]:
    return (PRIVATE,) if private else tuple(texts)


def _refers_privately(key: ForeignKey, child: Shape, parent: tuple[Connection, Shape] | None) -> bool:
    theirs = parent is not None and not parent[1].private.isdisjoint(key.referenced)
    return theirs or not child.private.isdisjoint(key.columns)


def _sql(name: TableName) -> str:
    return qualified(name.schema_name, name.name)
