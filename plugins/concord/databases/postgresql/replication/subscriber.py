"""The subscriber's end of a replication: entries are staged, and replayed in the publisher's order."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import psycopg

from concord.databases.contract.entry_decision import FOR_A_PERSON, Hold, Keys
from concord.databases.contract.last_entry import LastEntry
from concord.databases.contract.replication_ends import Copies, Filled, Replayed
from concord.databases.postgresql.compare.replica import Replica, replica_shape
from concord.databases.postgresql.entries import staging
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.staging import Layout
from concord.databases.postgresql.facts import open_connections
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import in_our_words, in_transaction, one, rows
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.databases.postgresql.log.published import Kind, Published
from concord.databases.postgresql.queued import procedure as queued_procedure
from concord.databases.postgresql.queued import version_tables
from concord.databases.postgresql.replay import contested, decided, decision, large_entry, refused_entry
from concord.databases.postgresql.replay.compared import CONFLICT
from concord.databases.postgresql.replay.hooked_entry import RefusedByHook
from concord.databases.postgresql.replay.known_columns import known_columns, refuse_unlogged
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.set_aside import EntrySetAside, private_at, refuse_part
from concord.databases.postgresql.replication import first_copy
from concord.databases.postgresql.replication.replay_session import SETTINGS, ReplaySession
from concord.databases.postgresql.replication.stopped_entry import StoppedEntry
from concord.databases.postgresql.replication.tables import followed, layout
from concord.databases.postgresql.sites.end import worded
from concord.databases.postgresql.sites.ends import WrittenEnd
from concord.jobs.replication import EntryOperation, ReplicationJob
from concord.messages.errors import WriteContended
from concord.rules.hook_function import AsksHook
from concord.tables.row_mapping import Mapper, in_the_driver

#: An application was in the way: the entry is replayed once more, as a whole (S4-135).
CONTENDED = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.SerializationFailure,
)
#: Seconds for which that is done.
PATIENCE = 120.0


class Subscriber(WrittenEnd):
    """Where entries are replayed, by one session of the applier's."""

    job: ReplicationJob

    def __init__(self, job: ReplicationJob) -> None:
        super().__init__(job)
        how = job.replication
        about = (job.epoch, self.access.name, how.scope, how.copies_tables, job.copied)
        self._level = Level(job.synchronization, job.source.name, *about)
        self._last = 0
        self._mapper: Mapper = in_the_driver
        self._ask_hook: AsksHook | None = None
        self._by_set = False  #: what waits is one large entry

    @property
    def is_private(self) -> bool:
        return any(table.is_private for table in self.job.replication.tables)

    @worded
    def inspect_subscribed(self, published: Published) -> Layout:
        """The layout of both ends' tables. Raises NotProvisioned, IdentityChanged or StructureChanged."""
        self._look(())
        wanted, site = self.job.replication.tables, self.access.name
        own = version_tables.names(wanted) if self.job.replication.queued else []
        tables = read_tables(self.connection, [*(each.at_site(site) for each in wanted), *own])
        self._layout = layout(
            site, self.job.source.name, wanted, tables, published, self.job.replication.history
        )
        return self._layout

    @worded
    def take_epoch(self) -> None:
        self._level.fence(self.connection)

    @worded
    def level(self) -> int:
        level = self._level.read(self.connection)
        self._level.refuse_invalid(self.connection)
        first_copy.refuse_filled(self.connection, self._layout, self.job)
        self._level.refuse_uncopied(self.connection, followed(self._layout.read))
        refuse_unlogged(self.connection, self._level, self._layout.read)
        return level

    @worded
    def reached(self) -> int:
        return self._level.reached(self.connection, followed(self._layout))

    @worded
    def last_entry(self) -> LastEntry | None:
        return self._level.last_entry(self.connection)

    @worded
    def current_at(self) -> datetime | None:
        return self._level.current_at(self.connection)

    @worded
    def asked_anew(self) -> str | None:
        return self._level.asked_anew(self.connection)

    @worded
    def invalidate(self, reason: str) -> None:
        with in_transaction(self.connection, "SET LOCAL synchronous_commit = on"):
            self._level.invalidate(self.connection, reason)

    @worded
    def begin(self) -> None:
        """Make this session ready to replay."""
        if self.job.replication.both_ways and not self.job.replication.queued:
            tables = decided.prepare(self.connection, self._level, self._layout.tables)
            self._layout = Layout(self._layout.published, tables)
        self._session = ReplaySession(self.connection, self._layout, self._level, self.job)
        self._session.begin()

    def map_by(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def hook_by(self, ask_hook: AsksHook | None) -> None:
        self._ask_hook = ask_hook

    @worded
    def stage(self, batch: Gathered) -> None:
        self._session.stage(batch, self._mapper)
        if batch.level is not None:
            self._last, self._by_set = batch.last, batch.is_large

    @worded
    def replay(self) -> Replayed:
        """Raises EntryRefused, WriteContended, LeaseLost: all entries before stand, and nothing of this one."""
        aside = self._set_aside()
        if aside is None:
            done = self._replayed()
        else:
            aside.hide()
            done = self._replayed().and_then(self._passed_over(aside))
            done = done.and_then(self._replayed())
        self.let_go()
        return done

    def _passed_over(self, aside: EntrySetAside) -> Replayed:
        try:
            return aside.pass_over(self.job.replication)
        except psycopg.Error as error:
            raise (self._stopped.refused(error) if error.sqlstate == CONFLICT else error) from error

    def _set_aside(self) -> EntrySetAside | None:
        """The entry that a person let pass, if it is among those that wait."""
        if self.job.set_aside is None:
            return None
        refuse_part(self.job.replication, self.job.set_aside, hooked=bool(self._session.hooks))
        how = (self._session.made.of(Kind.ROWS, Kind.CALLS), self._private, self.job.set_aside)
        aside = EntrySetAside(self.connection, self._level, *how)
        return aside if aside.waits() else None

    @property
    def _private(self) -> dict[str, tuple[str, ...]]:
        return private_at(self.access.name, self.job.replication)

    @worded
    def waiting(self, number: int) -> list[EntryOperation] | None:
        if not rows(self.connection, f"SELECT FROM {staging.ENTRIES} WHERE number = {number}"):
            return None
        told = self._session.made.of(Kind.ROWS, Kind.CALLS)
        return refused_entry.operations_of(self.connection, self._private, told, number)

    @worded
    def contested(self, number: int, places: Sequence[int] = ()) -> Sequence[int] | None:
        about = (self._layout.tables, self.job.replication, self._level, number)
        found = contested.operations(self.connection, *about)
        if found is None or not places:
            return found
        return contested.only(self.connection, self._layout.tables, number, found, places)

    @worded
    def keys(self, number: int, operations: Sequence[int] | None = None) -> Keys:
        return decision.keys_of(self.connection, self._layout.tables, number, operations)

    @contextmanager
    def deciding(self, keys: Keys, hold: Hold = FOR_A_PERSON) -> Iterator[decision.Decision]:
        try:
            about = (self._level, self._layout.tables, keys, self._private)
            with decision.begun(self.connection, *about, SETTINGS, hold) as mine:
                yield mine
        except psycopg.Error as error:
            raise in_our_words(error, self.access.name, private=self.is_private) from error

    def interrupt(self) -> None:
        open_connections.cancel_one(self.connection)

    @worded
    def let_go(self) -> None:
        self._session.clear(self._last)

    def _replayed(self) -> Replayed:
        began = time.monotonic()
        before = self._level.read(self.connection)
        entries = one(self.connection, f"SELECT count(*) FROM {staging.ENTRIES} WHERE number > {before}")[0]
        if not entries:
            return Replayed(0, {})
        done = Replayed(0, {})
        while True:
            try:
                called = self._called_or_left_out()
                if not called.entries:
                    return done.and_then(Replayed(int(entries) - done.entries, called.effects))
                done = done.and_then(called)
            except CONTENDED as error:
                if time.monotonic() - began > PATIENCE:
                    said = told(error, private=True)
                    raise WriteContended(f"{self.access.name}: {said}; the next run goes on there") from error
            except RefusedByHook as refused:
                raise self._stopped.refused_by_hook(refused) from refused
            except psycopg.Error as error:
                if not queued_procedure.falls(self.connection, self._layout, self.job, error, self._level):
                    raise self._stopped.refused(error) from error

    def _called_or_left_out(self) -> Replayed:
        """All that waits; or those before an entry of which operations were left out, and this one."""
        try:
            return Replayed(0, self._called())
        except psycopg.Error as error:
            left_out = self._stopped.left_out(error)
            if left_out is None:
                raise
            self._by_set = False
            return left_out

    @property
    def _stopped(self) -> StoppedEntry:
        return StoppedEntry(self.connection, self._level, self._session, self.job, self._private)

    def _called(self) -> Mapping[str, Mapping[str, int]]:
        """From the subscriber's level on: an entry that a try has committed is not replayed again."""
        since = self._level.read(self.connection)
        hooked = self._session.hooked(self._ask_hook)
        if hooked is not None and hooked.are_touched(since):
            return hooked.replay(since)
        if self._by_set:
            try:
                return self._session.call(since, by_set=True)
            except psycopg.Error as error:
                if error.sqlstate != large_entry.NOT_BY_SET and not is_refusal(error):
                    raise
                self._by_set = False  # the loop does it, or says which operation cannot be done
        return self._session.call(since, by_set=False)

    @worded
    def move_level(self, level: int, at: datetime | None) -> None:
        with in_transaction(self.connection, "SET LOCAL synchronous_commit = on"):
            self._level.move(self.connection, level, at)

    @worded
    def begin_at(self, level: int) -> None:
        with in_transaction(self.connection, "SET LOCAL synchronous_commit = on"):
            self._level.begin(self.connection, level, followed(self._layout), known_columns(self._layout))

    @worded
    def initialize(
        self, copies: Copies, level: int, *, replace: bool, about_to_commit: Callable[[], None]
    ) -> Filled:
        """The tables' content and the level, in one transaction. No user writes the tables meanwhile.

        Raises SitesDiffer where rows may not be replaced, MappingNotReversible, PrivilegeMissing, WriteContended.
        """
        wait = f"SET lock_timeout = '{PATIENCE:.0f}s'"
        local = [each.replace("SET ", "SET LOCAL ", 1) for each in (*SETTINGS, wait)]
        copies = first_copy.mapped(self._layout, copies, self._mapper)
        with in_transaction(self.connection, *local, "SET LOCAL synchronous_commit = on"):
            how = (self.connection, self._layout, copies, self._level, level)
            filled = first_copy.fill(*how, replace=replace, private=self.is_private)
            first_copy.pass_numbers(self.connection, self._layout, self.job.replication)
            about_to_commit()
        return filled

    def replica(self) -> Replica:
        """The tables that it keeps as the publisher's are; of a history each version is a row."""
        site = self.access.name
        shapes = [
            replace(replica_shape(wanted, site, each.table, each.columns), where=None)
            for wanted, each in zip(self.job.replication.tables, self._layout.of(Kind.ROWS), strict=True)
            if each.history is None
        ]
        return Replica(self.job, self.access, self._login, shapes)

    @worded
    def mend(self, tables: Collection[str], level: int) -> None:
        self._level.mend(self.connection, tables, level)
