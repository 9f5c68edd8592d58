"""An entry that is let pass unreplayed, or without the operations that fail: once, and on record (S2-22).

A person says so, or the configuration does, of operations that fail with numbers which it names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from concord.databases.contract.replication_ends import Replayed
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.replay import refused_entry
from concord.databases.postgresql.replay.level import Level
from concord.jobs.replication import CALLS, Aside, EntryOperation, ReplicationDefinition, SetAside
from concord.jobs.replication_report import QUARANTINED
from concord.messages.errors import ParametersRefused
from concord.tables.privacy import at_site

PRIVATE = "its values are private"
#: Whoever let a number of an error pass.
CONFIGURATION = "the configuration"


def private_at(site: str, replication: ReplicationDefinition) -> dict[str, tuple[str, ...]]:
    """By table: the columns that nobody is shown, as the site names them. Arguments of a call may be such values."""
    private = {
        each.name: tuple(at_site(each.private, each.manipulation_at(site))) for each in replication.tables
    }
    calls = ("arguments",) if any(private.values()) else ()
    return {**private, **dict.fromkeys([CALLS, *map(str, replication.procedures)], calls)}


def refuse_part(replication: ReplicationDefinition, asked: SetAside, *, hooked: bool = False) -> None:
    """Rows and their versions belong together, and hooks see all that is replayed. Raises ParametersRefused."""
    if hooked and asked.how is Aside.QUARANTINE:
        raise ParametersRefused(
            f"{replication.name}: an entry of tables with hooks is replayed whole, or not at all; use `entry skip`"
        )
    if replication.queued and asked.how is Aside.QUARANTINE:
        raise ParametersRefused(
            f"{replication.name}: a queued entry is replayed whole, or not at all; use `entry skip`"
        )


class EntrySetAside:
    """It waits among others; those before it are replayed first, and those after it later."""

    def __init__(
        self,
        connection: Connection,
        level: Level,
        tables: Sequence[ReplicatedTable],
        private: Mapping[str, Sequence[str]],
        asked: SetAside,
    ) -> None:
        self.connection, self.level, self.tables = connection, level, tables
        self.private, self.asked = private, asked

    def waits(self) -> bool:
        """Is it staged as a whole, and not replayed yet?"""
        level = self.level.read(self.connection)
        query = f"SELECT FROM {ENTRIES} WHERE number = {self.asked.number} AND number > {level}"
        return bool(rows(self.connection, query))

    def hide(self) -> None:
        """From the replay of those before it."""
        run(self.connection, f"UPDATE {ENTRIES} SET number = - number WHERE number >= {self.asked.number}")

    def pass_over(self, replication: ReplicationDefinition) -> Replayed:
        """In one transaction with the level: what is not replayed is kept. Raises LeaseLost."""
        run(self.connection, f"UPDATE {ENTRIES} SET number = - number WHERE number < 0")
        with in_transaction(self.connection, "SET LOCAL synchronous_commit = on"):
            found = refused_entry.operations_of(self.connection, self.private, self.tables, self.asked.number)
            effects: Mapping[str, Mapping[str, int]] = {}
            if self.asked.how is Aside.QUARANTINE:
                effects, found = self._without_failures(replication, found)
            elif not run(self.connection, self._level_moved()):
                raise self.level.lost
            if found:
                refused_entry.record(self.connection, self.level.replication, self.asked, found)
        return Replayed(1, effects, len(found))

    def leave_out(self, replication: ReplicationDefinition) -> Replayed | None:
        """The entry without the operations that fail with a number of the replication's `skip`, which are kept and
        counted. None where none fails when it is tried alone: then nothing was written.

        Raises LeaseLost, or the psycopg.Error of an operation that fails with another number.
        """
        found = refused_entry.operations_of(self.connection, self.private, self.tables, self.asked.number)
        with in_transaction(self.connection, "SET LOCAL synchronous_commit = on") as trying:
            effects, failed = self._without_failures(replication, found, replication.skip)
            if not failed:
                trying.last.append("ROLLBACK")
            else:
                refused_entry.record(self.connection, self.level.replication, self.asked, failed)
        if not failed:
            return None
        left_out = Counter(CALLS if each.operation == "call" else each.table for each in failed)
        kept = {table: {QUARANTINED: count} for table, count in left_out.items()}
        return Replayed(1, effects).and_then(Replayed(0, kept))

    def _level_moved(self) -> str:
        one = f"(SELECT e FROM {ENTRIES} e WHERE e.number = {self.asked.number})"
        return self.level.entry(one)

    def _without_failures(
        self, replication: ReplicationDefinition, found: Sequence[EntryOperation], numbers: Sequence[str] = ()
    ) -> tuple[Mapping[str, Mapping[str, int]], list[EntryOperation]]:
        run(self.connection, refused_entry.one_by_one(self.tables, replication, self.level, numbers))
        since = self.asked.number - 1
        (done,) = one(self.connection, f"SELECT pg_temp.concord_one_by_one({since})")
        if done is None:
            raise self.level.lost
        effects, failed = done
        said = {seq: (state, message) for seq, state, message in failed}
        return effects, [self._failed(each, said[each.seq]) for each in found if each.seq in said]

    def _failed(self, operation: EntryOperation, said: tuple[str, Any]) -> EntryOperation:
        state, message = said
        told = f"{PRIVATE if self.private[operation.table] else message} (error {state})"
        return operation.model_copy(update={"error": told})
