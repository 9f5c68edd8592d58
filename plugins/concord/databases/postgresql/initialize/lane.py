"""Lane: two connections, between which one key range after the other is passed into an empty table (COPY to COPY).

A range stands in the target's open transaction until `load` commits it, in its turn, or the lane is cleared.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psycopg

from concord.databases.contract.initialization import KeyRange
from concord.databases.postgresql.facts.connection import Connection, one, run
from concord.databases.postgresql.initialize.load_copy import LoadCopy
from concord.databases.postgresql.rows import acquire
from concord.databases.postgresql.transaction import one_transaction
from concord.databases.postgresql.write.relay import SourceFailed, pass_on

#: The target has something against a row, or a row stands in its way: then the range goes the careful way, which
#: finds out.
DECLINED = (
    psycopg.errors.IntegrityError,
    psycopg.errors.DataError,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
)

#: A site is read by as many connections as it allows, and no more (S0-45).
_UNDIVIDED = "SET LOCAL max_parallel_workers_per_gather = 0"

#: Of a range. Where nothing has been analyzed yet, the planner would read the whole table for each.
_BY_INDEX = "SET LOCAL enable_seqscan = off"

#: Seconds that a connection is given to end what it is at.
_PATIENCE: Final = 5.0


@dataclass(frozen=True, slots=True)
class Copied:
    """Rows and versions of a range that stand in the target's open transaction."""

    rows: int
    versions: int


class Declined(Exception):
    """The target takes the range in no such way; nothing of it is left there."""


@dataclass(frozen=True, eq=False)
class Lane:
    """One connection at the source, one at the target."""

    source: Connection
    target: Connection

    def copy(self, statements: LoadCopy, within: KeyRange, cut: str) -> Copied:
        """Pass the range on, read in the cut, and leave the target's transaction open.

        Raises Declined, then it is not; or what the databases raise: SourceFailed, or a psycopg.Error of the
        target's.
        """
        try:
            transaction_id = self._begun()
            self._join(within, cut)
            rows = self._passed(statements.send_rows(within), statements.take_rows)
            send = statements.send_versions(within, transaction_id)
            versions = self._passed(send, statements.take_versions)
            if versions and statements.target.by_log:
                run(self.target, statements.attributing)
        except DECLINED as error:
            self.clear()
            raise Declined(type(error).__name__) from error
        self._leave()
        return Copied(rows, versions)

    def _begun(self) -> str:
        begun = one(self.target, "BEGIN", *one_transaction.SETTINGS, "SELECT pg_current_xact_id()::text")
        return str(begun[0])

    def _join(self, within: KeyRange, cut: str) -> None:
        settings = [_UNDIVIDED] if within == KeyRange() else [_UNDIVIDED, _BY_INDEX]
        try:
            run(self.source, "BEGIN", *acquire.join_cut(cut, settings))
        except psycopg.Error as error:
            raise SourceFailed("the source sends nothing") from error

    def _passed(self, send: str, take: str) -> int:
        with self.target.cursor() as writing:
            with writing.copy(take.encode()) as taken:
                pass_on(self.source, send, taken)
            return writing.rowcount

    def _leave(self) -> None:
        try:
            run(self.source, "ROLLBACK")
        except psycopg.Error as error:
            raise SourceFailed("the source has ended") from error

    def clear(self) -> None:
        """Undo what stands in either connection."""
        for connection in (self.target, self.source):
            with suppress(psycopg.Error):
                run(connection, "ROLLBACK")

    def cancel(self) -> None:
        """Whatever it is at, from another thread."""
        for connection in (self.source, self.target):
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_PATIENCE)

    def close(self) -> None:
        """Uncommitted work is undone."""
        self.source.close()
        self.target.close()
