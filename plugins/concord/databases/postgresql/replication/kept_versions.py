"""Old versions of a history go: those that another one has followed for as long as they are kept (S0-50)."""

from __future__ import annotations

from datetime import datetime

import psycopg

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one, run
from concord.jobs.kept_history import KeptHistory
from concord.jobs.site import SiteAccess
from concord.values.identifier import TableName

#: Versions that go in one transaction.
BATCH = 10_000


def forget(site: SiteAccess, name: TableName, history: KeptHistory, now: datetime, *, dry_run: bool) -> int:
    """Delete old versions in batches, or count them; how many. Raises a ConcordError.

    The history still tells how each row was at any moment within `keep`.
    """
    if history.keep is None:
        return 0
    before = literal((now - history.keep).isoformat())
    try:
        with connect(site.applier, "concord log purge") as connection:
            table = read_tables(connection, [name]).get(name)
            if table is None:
                return 0
            followed, gone = _followed(table, history, before), _gone(table, history, before)
            if dry_run:
                return sum(_count(connection, table, each) for each in (followed, gone))
            # A delete goes last: without it, an older version would be the newest one, and its row would live.
            return sum(_delete(connection, table, each) for each in (followed, gone))
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error


def _followed(table: Table, history: KeptHistory, before: str) -> str:
    """Versions that were no longer the newest ones at that moment."""
    version = quote(history.version)
    newer = f"n.{version} > h.{version} AND n.committed_at < {before}"
    return f"EXISTS (SELECT FROM {table.sql} n WHERE {_same_key(table, history, 'n')} AND {newer})"


def _gone(table: Table, history: KeptHistory, before: str) -> str:
    """The deletes from before of which no other version is left."""
    version = quote(history.version)
    other = f"{_same_key(table, history, 'o')} AND o.{version} <> h.{version}"
    alone = f"NOT EXISTS (SELECT FROM {table.sql} o WHERE {other})"
    return f"h.operation = 'D' AND h.committed_at < {before} AND {alone}"


def _same_key(table: Table, history: KeptHistory, alias: str) -> str:
    """The history's key is that of the table and the version."""
    key = (quote(name) for name in table.primary_key if name != history.version)
    return " AND ".join(f"{alias}.{name} = h.{name}" for name in key)


def _count(connection: Connection, table: Table, which: str) -> int:
    (count,) = one(connection, f"SELECT count(*) FROM {table.sql} h WHERE {which}")
    return int(count)


def _delete(connection: Connection, table: Table, which: str) -> int:
    old = f"SELECT h.ctid FROM {table.sql} h WHERE {which} LIMIT {BATCH}"
    deleted, batch = 0, BATCH
    while batch == BATCH:
        batch = run(connection, f"DELETE FROM {table.sql} WHERE ctid = ANY (ARRAY({old}))")
        deleted += batch
    return deleted
