"""The one slot of a site whose changes are read from its log: made, read, confirmed, dropped (S1-32 b)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import own_schema
from concord.databases.postgresql.facts.connection import (
    Connection,
    connect,
    one,
    rows,
)
from concord.databases.postgresql.facts.own_schema import PUBLICATION
from concord.databases.postgresql.log import slot
from concord.databases.postgresql.log.frames import Frames, Read, log_connection, number
from concord.jobs.site import Credentials
from concord.messages.errors import HistoryLost, WriteContended

APPLICATION = "concord register"

#: Seconds in which whoever has read the slot before lets go of it.
_PATIENCE = 10.0


class CaptureLog:
    """A session of the log's own login; the slot is read once."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection
        self.slot = name_at(connection)
        self.frames = Frames(connection)

    def end(self) -> int:
        """All that has committed before stands before it, and is on disk. No id of a transaction up to here is ever
        given away again, whatever crashes (F67)."""
        (end,) = one(
            self._connection,
            "SET synchronous_commit = on",
            "SELECT pg_logical_emit_message(true, 'concord', '')::text",
        )
        return number(end)

    def start(self, level: int) -> None:
        """Read on after what was confirmed. Raises HistoryLost where that is not `level`, or before it, and where the
        log was removed; psycopg.Error."""
        refuse_lost(self._connection, self.slot, level)
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                # Never before what was confirmed: that is the server's to know.
                self.frames.start(self.slot, 0, PUBLICATION, binary=True)
            except psycopg.errors.ObjectInUse:
                if time.monotonic() > until:
                    raise WriteContended(
                        f"the slot {self.slot} is read by another process; the next run tries again"
                    ) from None
                slot.release(self._connection, self.slot)
            except psycopg.errors.ObjectNotInPrerequisiteState as error:
                raise HistoryLost(f"the log that {self.slot} needs was removed") from error
            else:
                return

    def confirm(self, level: int) -> None:
        """The log up to the level is registered, and need not be kept. A confirmation that is lost is made up for by
        the next one."""
        self.frames.confirm(level, answer=True)
        for message in self.frames.coming():
            if isinstance(message, Read):
                return


def name_at(connection: psycopg.Connection[tuple[object, ...]]) -> str:
    """The slot of the database to which it leads."""
    (database,) = one(connection, "SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
    return own_schema.capture_slot(database)


@contextmanager
def opened(login: Credentials) -> Iterator[CaptureLog]:
    """Raises SiteUnavailable or ConnectionRefused."""
    # The server would end a stream that is not read for a minute, as while a large transaction is handed on.
    with log_connection(login, APPLICATION, wal_sender_timeout="0") as connection:
        yield CaptureLog(connection)


def refuse_lost(connection: psycopg.Connection[tuple[object, ...]], name: str, level: int) -> None:
    """Raises HistoryLost where the slot is not the one that was confirmed up to the level."""
    found = rows(
        connection,
        "SELECT confirmed_flush_lsn::text, wal_status FROM pg_replication_slots"
        f" WHERE slot_name = {literal(name)} AND database = current_database()",
    )
    if not found:
        raise HistoryLost(f"the slot {name} is gone, and with it the log")
    confirmed, status = found[0]
    if status == "lost":
        raise HistoryLost(f"the log that {name} needs was removed")
    if number(confirmed) > level:
        raise HistoryLost(f"the slot {name} was made anew, or read by somebody else")


def level(connection: Connection) -> int | None:
    """How far the site's log is read; None where it never was."""
    if not rows(connection, "SELECT 1 WHERE to_regclass('concord.log_capture') IS NOT NULL"):
        return None
    found = rows(connection, "SELECT level::text FROM concord.log_capture")
    return number(found[0][0]) if found else None


def standing(connection: Connection, level: int | None) -> str | None:
    """Why the site's slot is none that can be gone on with; None where it is. `level`: as `refuse_lost` takes it."""
    try:
        refuse_lost(connection, name_at(connection), -1 if level is None else level)
    except HistoryLost as error:
        return error.message
    return None


def create(login: Credentials) -> None:
    """The slot, anew: whatever had its name goes. It waits for the transactions that are open."""
    with connect(login, APPLICATION) as connection:
        name = name_at(connection)
        slot.drop(connection, name)
        failover = ", false, true" if connection.info.server_version >= slot.FAILOVER else ""
        one(
            connection,
            f"SELECT pg_create_logical_replication_slot({literal(name)}, 'pgoutput', false{failover})::text",
        )


def drop(login: Credentials) -> None:
    """Where it is there."""
    with connect(login, APPLICATION) as connection:
        slot.drop(connection, name_at(connection))
