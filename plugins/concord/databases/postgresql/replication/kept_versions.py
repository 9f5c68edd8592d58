"""Old versions of a history go: those that another one has followed for as long as they are kept (S0-50)."""

from __future__ import annotations

from datetime import datetime

import psycopg

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one, run
from concord.databases.postgresql.replication import history_table
from concord.jobs.kept_history import KeptHistory
from concord.jobs.site import SiteAccess
from concord.messages.errors import StructureChanged
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
            if wrong := list(history_table.own_problems(table, history)):
                raise StructureChanged(
                    "; ".join(f"{site.name}: {line}; no version was deleted" for line in wrong)
                )
            followed, gone = _followed(table, history, before), _gone(table, history, before)
            if dry_run:  # no version is both
                return sum(_count(connection, table, each) for each in (followed, gone))
            # A delete goes last: without it, an older version would be the newest one, and its row would live.
            return sum(_delete(connection, table, each) for each in (followed, gone))
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error


def _followed(table: Table, history: KeptHistory, before: str) -> str:
    """Versions that were no longer the newest ones at that moment."""
    return f"EXISTS ({_later(table, history)} AND n.committed_at < {before})"


def _gone(table: Table, history: KeptHistory, before: str) -> str:
    """The deletes from before that no version has followed."""
    return f"h.operation = 'D' AND h.committed_at < {before} AND NOT EXISTS ({_later(table, history)})"


def _later(table: Table, history: KeptHistory) -> str:
    """A query: later versions `n` of the row of `h`. The history's key is that of the table and the version."""
    version = quote(history.version)
    key = (quote(name) for name in table.primary_key if name != history.version)
    same = " AND ".join(f"n.{name} = h.{name}" for name in key)
    return f"SELECT FROM {table.sql} n WHERE {same} AND n.{version} > h.{version}"


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
