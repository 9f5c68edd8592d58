"""Registering from the log: what users' committed transactions have touched becomes local changes of the shadow
tables (S1-32 b).

One transaction reads in one snapshot. Its news is what that snapshot shows and the last registered one does not. It
stamps the shadow row of every key that the log has of those transactions. Which row stands under the key, it sees in
the same snapshot: so a version and its content belong together.

The shadow row remembers by whom the base row was
written then (`WRITTEN_BY`). Where another one has written it since, the content belongs to a version that is yet to
be registered.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.capture import by_log, stamp
from concord.databases.postgresql.capture.shadow_table import WITH_WRITER, WRITTEN_BY, key_column
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, every, rows, run
from concord.databases.postgresql.facts.plans import BY_KEY, LOOK_UP
from concord.databases.postgresql.log import capture_slot
from concord.databases.postgresql.log.capture_slot import CaptureLog
from concord.databases.postgresql.log.frames import lsn, number
from concord.databases.postgresql.log.shown import Shown
from concord.databases.postgresql.log.touched import COLUMNS, Touched, TouchedTable
from concord.jobs.site import Credentials
from concord.messages.errors import HistoryLost, NotProvisioned, SiteUnavailable

#: How long a registration waits for another one, which reads the same log.
PATIENCE = "30s"

#: How often it begins again where a link has written the same rows meanwhile.
_TRIES = 20

#: One snapshot for all that it reads, taken once no other registration runs: LOCK takes none.
FIRST = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    f"SET LOCAL lock_timeout = '{PATIENCE}'",
    "LOCK TABLE concord.log_capture IN SHARE ROW EXCLUSIVE MODE",
)

_SITE = "SELECT registered::text, level::text, pg_current_snapshot()::text FROM concord.log_capture"
#: Of a table that was dropped and made again, or was not published as it was for a while, the log has a gap.
_TABLES = f"""
SELECT r.name, r.relation, r.shadow, r.key, to_regclass(r.relation)::oid::bigint, r.logged_since::text,
       {by_log.interrupted("to_regclass(r.relation)")},
       r.key <@ (SELECT jsonb_agg(attname::text) FROM pg_attribute WHERE attrelid = to_regclass(r.relation))
  FROM concord.replicated_table r WHERE r.logged_since IS NOT NULL ORDER BY r.name"""

#: Opens a transaction that begins with such statements.
Begin = Callable[..., AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class LoggedTable:
    """A table of the site whose log is read, as the site remembers it."""

    name: str
    relation: str
    sql: str  #: its shadow table
    names: tuple[str, ...]  #: of its key
    oid: int
    since: Shown
    has_key: bool  #: its columns have the names that they had when it was provisioned

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """Each column of the key, as the table names it and as the shadow table does."""
        return [(quote(name), key_column(name, self.names)) for name in self.names]

    @property
    def key_list(self) -> str:
        return self.key_of("")

    def key_of(self, row: str) -> str:
        before = f"{row}." if row else ""
        return ", ".join(f"{before}{shadowed}" for _, shadowed in self._pairs)

    def same_key(self, row: str) -> str:
        """Condition: the base row `t` has the key of this row."""
        return " AND ".join(f"t.{own} = {row}.{shadowed}" for own, shadowed in self._pairs)

    @property
    def stands(self) -> str:
        """Condition: there is a base row `t`."""
        return f"t.{quote(self.names[0])} IS NOT NULL"

    @property
    def touched(self) -> str:
        return f"concord_touched_{self.oid}"

    @property
    def touched_columns(self) -> str:
        keys = ", ".join(f"t.{own} AS {shadowed}" for own, shadowed in self._pairs)
        return ", ".join([*(f"NULL::{kind} AS {name}" for name, kind in COLUMNS.items()), keys])


@dataclass(frozen=True, slots=True)
class Registered:
    """The outcome of a registration."""

    rows: Mapping[str, int]  #: by table
    lost: Mapping[str, str]  #: tables of which the log does not tell all, each with the reason
    unread: frozenset[str] = frozenset()  #: those whose log is not read on until the site is provisioned

    def refuse_lost(self, site: str, tables: Collection[str]) -> None:
        """Raises HistoryLost where the log does not tell of one of the tables."""
        if lost := [lost_history(site, name, why) for name, why in self.lost.items() if name in tables]:
            raise HistoryLost("; ".join(lost))

    def refuse_unread(self, site: str, tables: Collection[str]) -> None:
        """Raises HistoryLost where the log would not tell either what follows from here on."""
        if unread := sorted(self.unread & set(tables)):
            raise HistoryLost(
                f"{site}: {', '.join(unread)}: {self.lost[unread[0]]}; run `provision` first, which begins to read the"
                " log anew. Nothing was written"
            )


def lost_history(site: str, table: str, why: str) -> str:
    """For a person, who alone can go on."""
    return (
        f"{site}: {table}: {why}; what its users did meanwhile nobody can tell. Run `provision`, then"
        " `initialize NAME` for each synchronization that carries it"
    )


def register(
    login: Credentials, connection: Connection, begin: Begin, waiting: Mapping[str, str] | None = None
) -> Registered:
    """Register what users have committed to any table of the site whose log is read.

    `begin` opens the transaction on the connection. `waiting`: by table, the condition on the shadow rows `p` that a
    link is about to send. Raises psycopg.Error, NotProvisioned, SiteUnavailable, and what `begin` raises.
    """
    for left in reversed(range(_TRIES)):
        try:
            with capture_slot.opened(login) as log:
                made, level = _registered(log, connection, begin, waiting or {})
                if level is not None:
                    log.confirm(level)
            return made
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            if not left:
                raise
            time.sleep(random.uniform(0, 0.05))  # noqa: S311 - jitter needs no cryptography
    raise AssertionError("the last try raises")


def _registered(
    log: CaptureLog, connection: Connection, begin: Begin, waiting: Mapping[str, str]
) -> tuple[Registered, int | None]:
    """One try, as one transaction; how far the log need not be kept any more."""
    with begin(connection, *FIRST):
        before, level, shown, applied = _site(connection)
        tables, lost = _tables(connection)
        unread = frozenset(lost)
        if lost and not tables:  # the publication itself may be gone, without which no log is read
            _lose(connection, lost)
            return Registered({}, lost, unread), None
        try:
            end = log.end()
            log.start(number(level))
        except HistoryLost as error:
            lost |= dict.fromkeys(tables, error.message)
            _lose(connection, lost)
            return Registered({}, lost, frozenset(lost)), None
        gathered = {each.oid: _gathering(connection, each) for each in tables.values()}
        reading = Touched(gathered, shown, before, applied)
        _read(log, reading, end)
        lost |= {each.name: each.lost for each in gathered.values() if each.lost}
        run(connection, *BY_KEY, LOOK_UP)
        made = {
            each.name: _stamp(connection, tables[each.name])
            for each in gathered.values()
            if each.touched and not each.lost
        }
        for name in waiting.keys() & tables.keys():
            attribute(connection, tables[name], waiting[name])
        _lose(connection, lost)
        passed = end if reading.held is None else reading.held
        run(
            connection,
            "UPDATE concord.log_capture SET registered = pg_current_snapshot(),"
            f" level = greatest(level, {literal(lsn(passed))})",
        )
    return Registered(made, lost, unread), passed


def _site(connection: Connection) -> tuple[Shown, str, Shown, set[int]]:
    """The registered snapshot, the level of the log, this transaction's snapshot, and the transactions of links. Those
    are forgotten, since the log is read past them now."""
    forgotten = "DELETE FROM concord.applied RETURNING transaction::text::bigint"
    found, applied = every(connection, _SITE, forgotten)
    if not found:
        raise NotProvisioned("the site's log is not read yet; run `provision`")
    [(before, level, shown)] = found
    return Shown.of(before), level, Shown.of(shown), {each for (each,) in applied}


def _tables(connection: Connection) -> tuple[dict[str, LoggedTable], dict[str, str]]:
    """Those whose log is read, and those of which it has a gap."""
    tables, lost = {}, {}
    for name, relation, shadow, key, oid, since, interrupted, has_key in rows(connection, _TABLES):
        if oid is None or interrupted:
            lost[name] = by_log.INTERRUPTED
        else:
            sql = qualified("concord", shadow)
            tables[name] = LoggedTable(name, relation, sql, tuple(key), oid, Shown.of(since), has_key)
    return tables, lost


def _gathering(connection: Connection, table: LoggedTable) -> TouchedTable:
    take = partial(_take, connection, table) if table.has_key else None
    return TouchedTable(table.name, table.names, table.since, take)


def _take(connection: Connection, table: LoggedTable, keys: bytes) -> None:
    """Keys into a temporary table, which the first of them make."""
    if not rows(connection, f"SELECT 1 WHERE to_regclass('pg_temp.{table.touched}') IS NOT NULL"):
        empty = f"SELECT {table.touched_columns} FROM {table.relation} t WITH NO DATA"
        run(connection, f"CREATE TEMPORARY TABLE {table.touched} ON COMMIT DROP AS {empty}")
    with connection.cursor().copy(
        f"COPY pg_temp.{table.touched} FROM STDIN (FORMAT BINARY)".encode()
    ) as copy:
        copy.write(keys)


def _read(log: CaptureLog, reading: Touched, end: int) -> None:
    """Raises SiteUnavailable where the stream breaks: whatever the log's server says of it."""
    try:
        reading.read(log.frames.until(end))
    except psycopg.OperationalError as error:
        raise SiteUnavailable(f"the log was not read to its end: {str(error).strip()}") from error


def _stamp(connection: Connection, table: LoggedTable) -> int:
    """The touched keys as edits of this site, in the order in which links lock them; how many.

    A key is born if its first operation inserts it.
    """
    keys, first = table.key_list, "min(concord_place)"
    born = f"coalesce({first} FILTER (WHERE concord_born) = {first}, false)"
    selected = f"""
SELECT {table.key_of("x")}, here.origin, clock.at, 0, {stamp.vector("here.origin", "clock.at")}, NOT {table.stands},
       x.born, NULL, pg_current_xact_id(), t.xmin
  FROM (SELECT {keys}, max(concord_at) AS at, {born} AS born FROM pg_temp.{table.touched} GROUP BY {keys}) x
 CROSS JOIN concord.site here
 CROSS JOIN LATERAL (SELECT greatest(least(x.at, {row_version.NOW}), here.stamp_floor + 1) AS at) clock
  LEFT JOIN {table.relation} t ON {table.same_key("x")}
 ORDER BY {table.key_of("x")}"""
    return run(
        connection,
        f"ANALYZE pg_temp.{table.touched}",
        stamp.upsert(table, selected, "excluded.deleted", base=WITH_WRITER).rstrip(";"),
    )


def attribute(connection: Connection, table: LoggedTable, which: str) -> int:
    """Shadow rows `p` whose base rows have got another writer, and no edit: all that this snapshot shows is
    registered. A rewrite of the table does it, and triggers told no writer. Rows that this very transaction has
    stamped are not looked up again."""
    writer = f"(SELECT t.xmin FROM {table.relation} t WHERE {table.same_key('p')})"
    otherwise = f"p.position <> pg_current_xact_id() AND p.{WRITTEN_BY} IS DISTINCT FROM {writer}"
    return run(
        connection, f"UPDATE {table.sql} p SET {WRITTEN_BY} = {writer} WHERE ({which}) AND {otherwise}"
    )


def _lose(connection: Connection, lost: Mapping[str, str]) -> None:
    for name, why in lost.items():
        run(connection, *by_log.losing(name, why))
