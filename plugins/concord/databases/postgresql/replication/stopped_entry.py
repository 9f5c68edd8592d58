"""An entry at which the replay stops: the words for people, or its operations left out as the configuration says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg

from concord.databases.contract.replication_ends import Replayed
from concord.databases.postgresql.entries import staging
from concord.databases.postgresql.facts.connection import Connection, one
from concord.databases.postgresql.facts.refusal import told
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.replay import compared, procedure, refused_entry
from concord.databases.postgresql.replay.hooked_entry import RefusedByHook
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.set_aside import CONFIGURATION, EntrySetAside
from concord.databases.postgresql.replication.replay_session import ReplaySession
from concord.jobs.replication import Aside, ReplicationJob, SetAside
from concord.messages.errors import EntryConflict, EntryRefused
from concord.messages.event_log import log_event, logger_named

logger = logger_named("concord.replication")


class StoppedEntry:
    """The first one after the level; those before it are replayed."""

    def __init__(
        self,
        connection: Connection,
        level: Level,
        session: ReplaySession,
        job: ReplicationJob,
        private: Mapping[str, Sequence[str]],
    ) -> None:
        self.connection, self.level, self.session = connection, level, session
        self.job, self.private = job, private

    def left_out(self, error: psycopg.Error) -> Replayed | None:
        """Those before it, and it without the operations whose errors have a number of the replication's `skip`.

        None where the error may not be skipped, or where no operation alone fails. Raises psycopg.Error, LeaseLost.
        """
        replication = self.job.replication
        if error.sqlstate not in replication.skip or self.connection.closed:
            return None
        stand = Replayed(0, self.session.counted_so_far())
        number, _, _ = self._next()
        reason = f"skip: {error.sqlstate}"
        asked = SetAside(number=number, how=Aside.QUARANTINE, reason=reason, by=CONFIGURATION)
        tables = self.session.made.of(Kind.ROWS, Kind.CALLS)
        done = EntrySetAside(self.connection, self.level, tables, self.private, asked).leave_out(replication)
        if done is None:
            return None
        log_event(logger, "operations that fail are left out", replication=replication.name, entry=number)
        return stand.and_then(done)

    def refused(self, error: psycopg.Error) -> Exception:
        """Ours for an entry that cannot be replayed; other errors are worded as everywhere."""
        if error.sqlstate == procedure.LOST:
            return self.level.lost
        if not error.sqlstate or error.sqlstate[:2] in {"08", "53", "57"} or self.connection.closed:
            return error
        number, at, level = self._next()
        said = f"{told(error, private=self._is_private)} (error {error.sqlstate})"
        name, site = self.job.replication.name, self.job.target.name
        where = self._where(level, number)
        stops = self.job.replication.both_ways and not self.job.replication.queued
        if stops and error.sqlstate in compared.CONFLICTS:
            return EntryConflict(
                f"{site}: entry {number}, committed at {at}, cannot be replayed{where}: {said}. All before"
                " it are, and nothing of it; the other direction stops at the same row. See"
                f" `python -m concord entry show {name} {number} --direction {self.job.direction}`",
                number=number,
            )
        return EntryRefused(
            f"{site}: entry {number}, committed at {at}, cannot be replayed{where}: {said}."
            f" All before it are. {self._remedy('table', number)}"
        )

    def refused_by_hook(self, refused: RefusedByHook) -> EntryRefused:
        """The same of an operation that a hook refuses."""
        number, at, _ = self._next()
        return EntryRefused(
            f"{self.job.target.name}: entry {number}, committed at {at}, cannot be replayed at its"
            f" {refused.operation}: {refused.why}. All before it are. {self._remedy('hook', number)}"
        )

    def _remedy(self, refuses: str, number: int) -> str:
        """No run sets an entry aside while it refuses the tables that are to be copied."""
        name, mend = self.job.replication.name, f"Mend the row or the {refuses}"
        if self.job.copied:
            whole = f"`python -m concord replicate {name} --initialize --replace`"
            return f"{mend}, and copy again; or copy all tables: {whole}"
        return (
            f"{mend}, and the next run tries it again; or see `python -m concord entry show {name} {number}`"
        )

    @property
    def _is_private(self) -> bool:
        return any(table.is_private for table in self.job.replication.tables)

    def _next(self) -> tuple[int, str, int]:
        """Its number, and when it was committed; the level."""
        level = self.level.read(self.connection)
        first = f"WHERE number > {level} ORDER BY number LIMIT 1"
        number, at = one(self.connection, f"SELECT number, at::text FROM {staging.ENTRIES} {first}")
        return int(number), str(at), level

    def _where(self, level: int, number: int) -> str:
        """Which of its operations fails, as a try of this entry alone tells."""
        if self.job.replication.queued:
            return ""
        tables, how = self.session.made.tables, self.job.replication
        seq = refused_entry.first_failure(self.connection, tables, how, level)
        found = refused_entry.operations_of(self.connection, self.private, tables, number) if seq else []
        place = next((at for at, each in enumerate(found, 1) if each.seq == seq), 0)
        return (
            f" at operation {place} of {len(found)} ({found[place - 1].operation} of {found[place - 1].table})"
            if place
            else ""
        )
