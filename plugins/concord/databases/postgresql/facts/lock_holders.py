"""The sessions that hold tables for which somebody has waited in vain, and those that wait as well.

Asked once the wait has ended, on a connection that waits for nothing. Each login sees every lock, and of other users'
sessions the user and the application; since when they hold it, `pg_read_all_stats` shows.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import psycopg

from concord.databases.postgresql.facts.connection import Connection, rows

#: Sessions that a message names for a table.
SHOWN = 3

#: Of `{oids}`, and of Concord's own tables where a login may look: who holds them (`granted`) or waits. Readers alone
#: (ACCESS SHARE) are in nobody's way but of who alters a table.
_SESSIONS = """
SELECT format('%I.%I', n.nspname, c.relname), l.granted, l.pid, a.usename::text, a.application_name, a.state,
       to_char(a.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), p.gid,
       to_char(p.prepared AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"'), p.owner::text
  FROM (SELECT l.relation, l.pid, l.virtualtransaction, bool_and(l.granted) AS granted,
               bool_or(l.mode <> 'AccessShareLock') AS strong
          FROM pg_locks l WHERE l.locktype = 'relation' AND l.pid IS DISTINCT FROM pg_backend_pid()
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP BY 1, 2, 3) l
  JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  LEFT JOIN (pg_locks x JOIN pg_prepared_xacts p ON p.transaction = x.transactionid)
    ON l.pid IS NULL AND x.locktype = 'transactionid' AND x.virtualtransaction = l.virtualtransaction
 WHERE c.oid = ANY ('{{{oids}}}'::oid[]) AND (l.strong OR {readers})
 ORDER BY 1, NOT l.strong, coalesce(a.xact_start, p.prepared), l.pid"""


class _Session(NamedTuple):
    table: str
    holds: bool
    pid: int | None  #: None: a prepared transaction, which no session has any more
    user: str | None
    application: str | None
    state: str | None
    since: str | None
    prepared: str | None
    prepared_at: str | None
    owner: str | None

    @property
    def told(self) -> str:
        if self.pid is None:
            return (
                f"the prepared transaction {self.prepared} (user {self.owner}, since {self.prepared_at};"
                " COMMIT PREPARED or ROLLBACK PREPARED ends it)"
            )
        application = f", application {self.application}" if self.application else ""
        state = f", {self.state}" if self.state else ""
        since = f"since {self.since}" if self.since else "since when only pg_read_all_stats sees"
        return f"process {self.pid} (user {self.user}{application}, {since}{state})"


def described(connection: Connection, tables: Collection[int], *, readers: bool = False) -> str:
    """A sentence about the tables (oids), empty where nobody holds one of them any more. `readers`: those who only
    read a table count as well."""
    try:
        found = _sessions(connection, tables, readers=readers)
    except psycopg.Error:  # what went wrong first must be told
        return ""
    held = sorted({each.table for each in found if each.holds})
    return "; ".join(_told(name, [each for each in found if each.table == name]) for name in held)


def _sessions(connection: Connection, tables: Collection[int], *, readers: bool) -> list[_Session]:
    query = _SESSIONS.format(oids=",".join(map(str, sorted(tables))), readers=str(readers).lower())
    return [_Session(*each) for each in rows(connection, query)]


def _told(table: str, sessions: list[_Session]) -> str:
    holders, waiting = ([each for each in sessions if each.holds is holds] for holds in (True, False))
    told = f"{table} is held by {_listed(holders)}"
    return f"{told}, and {_listed(waiting)} waits for it too" if waiting else told


def _listed(sessions: list[_Session]) -> str:
    more = f" and {len(sessions) - SHOWN} more" if len(sessions) > SHOWN else ""
    return " and ".join(each.told for each in sessions[:SHOWN]) + more
