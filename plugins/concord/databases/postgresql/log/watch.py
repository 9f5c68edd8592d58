"""A look at a publisher's log between runs, again and again: it costs next to nothing while nobody writes (S2-30)."""

from __future__ import annotations

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.watched_log import WatchedLog
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, rows
from concord.databases.postgresql.log import slot
from concord.databases.postgresql.log.first_waiting import APPLICATION, first_waiting
from concord.jobs.site import Credentials


class Watch:
    """The log is read only where it has grown since it was last read in vain, whoever wrote it."""

    def __init__(self, login: Credentials, log: WatchedLog) -> None:
        self._login, self._log = login, log
        self._name = slot.slot_name(log.replication, log.direction)
        self._connection: Connection | None = None
        self._idle_up_to = ""

    def look(self) -> int | None:
        try:
            return self._looked()
        except (psycopg.errors.ObjectInUse, psycopg.errors.AdminShutdown):  # a run has begun to read it
            return None
        except psycopg.Error as error:
            self.close()
            raise in_our_words(error, self._log.replication) from error

    def _looked(self) -> int | None:
        if self._connection is None:
            self._connection = connect(self._login, APPLICATION)
        found = rows(
            self._connection,
            "SELECT pg_current_wal_flush_lsn()::text, active OR wal_status = 'lost' FROM pg_replication_slots"
            f" WHERE slot_name = {literal(self._name)} AND database = current_database()",
        )
        if not found:
            return None
        [(end, is_read)] = found
        if is_read or end == self._idle_up_to:
            return None
        waiting = first_waiting(self._login, self._log)
        if waiting is None:
            self._idle_up_to = end
            return None
        return waiting.commit

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
