"""The rows that a refresh reads at the source: all rows of the query, or the rows that changed since a position."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.session import PIN
from concord.databases.postgresql.rows.acquire import arrived
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.snapshots.layout import Layout

#: Pages of a table that one reader takes before a second one is worth its start.
PAGES_PER_READER = 1_000


def files(connection: Connection, relation: Table) -> dict[str, int]:
    """Every table and materialized view that the relation reads, however deep below views, and its file: another
    one after every rewrite. The tables that a function reads cannot be known."""
    found = rows(
        connection,
        f"""
WITH RECURSIVE used (oid) AS (
  SELECT {relation.oid}::oid UNION
  SELECT below.oid FROM used u CROSS JOIN LATERAL (
    SELECT inhrelid FROM pg_inherits WHERE inhparent = u.oid UNION ALL
    SELECT d.refobjid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
     WHERE r.ev_class = u.oid AND d.refclassid = 'pg_class'::regclass) below (oid)
)
SELECT c.oid::regclass::text, c.relfilenode::bigint FROM used JOIN pg_class c USING (oid)
 WHERE c.relkind IN ('r', 'm')""",
    )
    return dict(found)


def rows_queries(layout: Layout, condition: str, pages: int, readers: int) -> tuple[str, ...]:
    """All rows of the query, one query a reader: of a table by ranges of its pages, of a view all at once.

    The last range is open at its end; the readers share one snapshot, so pages added meanwhile hold nothing
    for them.
    """
    parts = max(1, min(readers, pages // PAGES_PER_READER)) if layout.table.kind == "r" else 1
    bounds = [pages * part // parts for part in range(parts)]
    selected = ", ".join(f"{c.type.outgoing(f't.{c.sql}')} AS {layout.alias(c)}" for c in layout.columns)
    query = f"SELECT {selected}, false AS gone FROM {layout.table.sql} t WHERE {condition}"
    return tuple(query + _pages(part, bounds) for part in range(parts))


def _pages(part: int, bounds: list[int]) -> str:
    if len(bounds) == 1:
        return ""
    below = f" AND t.ctid < '({bounds[part + 1]},0)'::tid" if part + 1 < len(bounds) else ""
    return f" AND t.ctid >= '({bounds[part]},0)'::tid{below}"


def digests_query(layout: Layout, condition: str) -> str:
    """One digest a row, for a plan that compares without moving rows."""
    return f"SELECT {layout.digest('t')} AS digest FROM {layout.table.sql} t WHERE {condition}"


def count_query(shape: Shape, since: str) -> str:
    """How many keys arrived after the position, whichever link or user changed them."""
    return f"SELECT count(*) FROM {shape.shadow.sql} p WHERE {arrived(since)}"


def changes_query(layout: Layout, shape: Shape, condition: str, since: str, part: tuple[int, int]) -> str:
    """Changed keys with the rows that stand in the query now; `gone` where none does (T18).

    A row that left the filter is gone for the snapshot, whatever its base row says.
    """
    selected = ", ".join(
        f"{c.type.outgoing(_side(layout, shape, c.name))} AS {layout.alias(c)}" for c in layout.columns
    )
    ordinal, parts = part
    share = "" if parts == 1 else f" AND (hashtid(p.ctid) & 2147483647) % {parts} = {ordinal}"
    return (
        f"SELECT {selected}, t.{shape.key[0].sql} IS NULL AS gone FROM {shape.shadow.sql} p"
        f" LEFT JOIN {layout.table.sql} t ON {shape.same_key('t', 'p')} AND ({condition})"
        f" WHERE {arrived(since)}{share}"
    )


def _side(layout: Layout, shape: Shape, name: str) -> str:
    """The key comes from the shadow row, since a row that is gone has no other (F42)."""
    column = layout.table.column(name)
    if name not in shape.shadow.key:
        return f"t.{column.sql}"
    told = shape.key_in("p", column)
    return f"coalesce(t.{column.sql}, {told})" if column.type.has_several_forms else told


def whole_cut(exported: str) -> tuple[str, ...]:
    """The first statements of a reader of everything: it shares the snapshot, and may walk the table."""
    return (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(exported)}",
        PIN,
    )
