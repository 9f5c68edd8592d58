"""Rows that a user's trigger wrote again before the operation of the statement itself was kept.

PostgreSQL calls triggers once a statement has written all of its rows. The first row's trigger may write the second one
again: then the later operation of that row is kept first. Images that do not follow from each other show it.
"""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import PublishedTable

_OF = "concord.entry e JOIN concord.operation o ON o.transaction = e.transaction"


def first(
    connection: Connection, tables: Sequence[PublishedTable], since: int, until: int
) -> tuple[int, str] | None:
    """The first such entry among those of these numbers, and its table."""
    mixed = rows(
        connection,
        f"SELECT DISTINCT x.relation::bigint FROM (SELECT o.relation FROM {_OF} WHERE e.number BETWEEN {since} AND"
        f" {until} GROUP BY e.number, o.relation HAVING min(o.depth) < max(o.depth)) x",
    )
    found = [
        (int(number), table.name)
        for table in tables
        if (table.table.oid,) in mixed
        for (number,) in rows(connection, _misplaced(table, since, until))
    ]
    return min(found, default=None)


def _misplaced(table: PublishedTable, since: int, until: int) -> str:
    """Of each key, an operation's image before it is that after the last one; a truncate ends all of them."""
    was, now = (", ".join(f"(s.{row}).{quote(name)}" for name in table.key) for row in "bn")
    keys = ", ".join(f"k{at}" for at in range(len(table.key)))
    named = f"number, place, life, {keys}, before, after"
    return f"""
WITH s AS MATERIALIZED (
  SELECT e.number, o.place, o.before, o.after, o.before::{table.table.sql} AS b, o.after::{table.table.sql} AS n,
         count(*) FILTER (WHERE o.operation = 'T') OVER (PARTITION BY e.number ORDER BY o.place) AS life
    FROM {_OF} WHERE e.number BETWEEN {since} AND {until} AND o.relation = {table.table.oid}
), met ({named}) AS (
  SELECT number, place, life, {was}, before, CASE WHEN ({was}) IS NOT DISTINCT FROM ({now}) THEN after END
    FROM s WHERE before IS NOT NULL
  UNION ALL
  SELECT number, place, life, {now}, NULL, after
    FROM s WHERE after IS NOT NULL AND (before IS NULL OR ({was}) IS DISTINCT FROM ({now}))
)
SELECT min(number) FROM (
  SELECT number, before, lag(after) OVER w AS was, row_number() OVER w AS nth
    FROM met WINDOW w AS (PARTITION BY number, life, {keys} ORDER BY place)) x
 WHERE nth > 1 AND was IS DISTINCT FROM before HAVING count(*) > 0"""
