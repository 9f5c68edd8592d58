"""The publisher's end of a replication: its tables, its slot, its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from math import inf

import psycopg

from concord.databases.contract.compared_replica import ComparedLog, Touched
from concord.databases.contract.last_entry import LastEntry
from concord.databases.contract.logged_structures import NOTHING_LOGGED, LoggedStructures
from concord.databases.contract.replication_ends import LogEnd
from concord.databases.postgresql.calls import call_objects
from concord.databases.postgresql.calls.published import with_calls
from concord.databases.postgresql.entries.brake import Brake
from concord.databases.postgresql.entries.from_log import Entries, Gathered, until_level
from concord.databases.postgresql.entries.read_back import touched
from concord.databases.postgresql.facts import interruptions
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import (
    Connection,
    connect,
    one,
)
from concord.databases.postgresql.log import generated_columns, publication, same_history, slot
from concord.databases.postgresql.log.frames import Frames, log_connection, number
from concord.databases.postgresql.log.logged_columns import as_logged, first_relations
from concord.databases.postgresql.log.published import Kind, Published
from concord.databases.postgresql.queued import delivered, version_tables
from concord.databases.postgresql.queued.versioned_entries import VersionedEntries
from concord.databases.postgresql.replication.published_end import PublishedEnd, worded_at
from concord.databases.postgresql.replication.tables import published_tables
from concord.databases.postgresql.sites.end import worded
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import StructureChanged, WriteContended

#: How often a run takes the slot from others that read it.
_TRIES = 5
#: Seconds for which a comparison's log waits for one transaction that was open before it.
OPEN = 600.0


class Stream:
    """The log from one level on, as batches of entries."""

    def __init__(self, site: str, frames: Frames, entries: Entries) -> None:
        self._site, self._frames, self._entries = site, frames, entries

    def batches(self, end: int) -> Iterator[Gathered]:
        with worded_at(self._site):
            yield from self._entries.batches(self._frames.until(end))

    def up_to(self, level: int) -> Iterator[Gathered]:
        with worded_at(self._site):
            yield from self._entries.batches(until_level(self._frames.until(level), level))

    def coming(self) -> Iterator[Gathered | None]:
        with worded_at(self._site):
            yield from self._entries.coming(self._frames.coming())

    @property
    def passed(self) -> int:
        return self._frames.passed

    def confirm(self, level: int) -> None:
        with worded_at(self._site):
            self._frames.confirm(level)


class Publisher(PublishedEnd):
    """Read by the log's own login, which has REPLICATION; rows of a first copy by the reader."""

    def __init__(self, job: ReplicationJob) -> None:
        super().__init__(job)
        self._beating: Connection | None = None
        self._slot = slot.slot_name(job.replication.name, job.direction)
        self._publication = publication.publication_name(job.replication.replication_set)

    @worded
    def inspect_published(self, logged: LoggedStructures = NOTHING_LOGGED) -> Published:
        """The tables with their keys; all in the publication. Raises NotProvisioned or StructureChanged."""
        self._look(())
        wanted, site = self.job.replication.tables, self.access.name
        how = self.job.replication
        versions = version_tables.names(wanted) if how.queued else []
        calls = [call_objects.TABLE] if how.procedures else []
        tables = read_tables(self.connection, [*(each.at_site(site) for each in wanted), *versions, *calls])
        found = publication.find(self.connection, self._publication)
        of_rows = published_tables(site, wanted, tables, compared=how.compares, whole=found.whole_members)
        published = (
            version_tables.published(site, wanted, of_rows, tables)
            if how.queued
            else with_calls(site, of_rows, how.procedures, tables)
        )
        published = replace(
            published, tables=generated_columns.as_published(self.connection, published.tables)
        )
        captured = interruptions.read(self.connection, interruptions.published(self._publication))
        own = publication.Own(level=how.both_ways)
        wrong = list(publication.deviations(self.connection, found, published.tables, own))
        if wrong := wrong or list(interruptions.deviations(captured)):
            raise StructureChanged(f"{site}: {'; '.join(wrong)}; run `provision`")
        if full := list(publication.refused_identities(found, published.tables)):
            raise StructureChanged("; ".join(f"{site}: {line}" for line in full))
        counts = {each.oid: each.interruptions for each in captured if each.interruptions}
        # In place of a call that is not captured its rows travel.
        lacking = tuple(
            f"{each.oid}:{each.interruptions} {each.told}"
            for each in captured
            if how.both_ways and each.oid in counts and each.is_own and each.name != call_objects.TABLE.name
        )
        found_now = replace(published, as_text=how.maps, interruptions=counts, interrupted_own=lacking)
        return as_logged(self.connection, found_now.without(self.job.copied), logged)

    @worded
    def logged_structures(self, published: Published) -> LoggedStructures:
        wanted = {oid for oid, place in published.places.items() if published.tables[place].kind is Kind.ROWS}
        with self._log_connection() as connection, connect(self.job.reads_log, self._application) as control:
            if slot.confirmed(control, self._slot) is None:
                return NOTHING_LOGGED
            frames = Frames(connection)
            self._start(frames, control, 0, binary=False)
            return first_relations(frames.until(self.end_of_log().number), wanted)

    @worded
    def end_of_log(self) -> LogEnd:
        """Where the log goes on now. A commit follows, so that all before is on disk, and the server reads up to it.

        It is the beat of an idle publisher as well: without it the slot of an idle database keeps the log of others.
        """
        if self._beating is None:
            self._beating = connect(self.access.applier, self._application)
        end, at = one(
            self._beating,
            "UPDATE concord.site SET heartbeat = pg_current_xact_id()::text::bigint"
            " RETURNING pg_current_wal_insert_lsn()::text, now()",
        )
        return LogEnd(number(end), at)

    def close(self) -> None:
        super().close()
        if self._beating is not None:
            self._beating.close()

    def refuse_unkept(self, level: int) -> int:
        names = (self.access.name, self.job.target.name, self.job.replication.name)
        return slot.refuse_lost(self.connection, self._slot, level, *names)

    def has_entry(self, last: LastEntry, confirmed: int, level: int) -> bool:
        with self._log_connection() as connection:
            frames = Frames(connection)
            with connect(self.job.reads_log, self._application) as control:
                self._start(frames, control, 0, binary=False)
            return same_history.is_same(frames.until(level), self._own, last, confirmed, level)

    @contextmanager
    def stream(self, level: int, published: Published) -> Iterator[Stream]:
        """Raises WriteContended while an older run reads, HistoryLost, SiteUnavailable."""
        with self._log_connection() as connection:
            frames = Frames(connection)
            with worded_at(self.access.name), connect(self.job.reads_log, self._application) as control:
                self._start(frames, control, level, binary=published.binary)
            how = self.job.replication
            # A conflict is found operation by operation, by the image of the row before it.
            by_set_from = inf if how.both_ways else how.set_based_from
            brake = Brake(how.name, how.largest_transaction, self.job.approved)
            entries = (
                VersionedEntries(published, level, self._own, brake, how.at_once)
                if how.queued
                else Entries(published, level, by_set_from, self._own, brake, how.at_once)
            )
            yield Stream(self.access.name, frames, entries)

    @property
    def _own(self) -> str:
        """The replication whose own transactions do not travel back."""
        return self.job.synchronization if self.job.replication.both_ways else ""

    def _start(self, frames: Frames, control: Connection, level: int, *, binary: bool) -> None:
        """Whoever only looks at the log may come between."""
        for left in reversed(range(_TRIES)):
            slot.release(control, self._slot)
            try:
                frames.start(self._slot, level, self._publication, binary=binary)
            except psycopg.errors.ObjectInUse:
                if not left:
                    raise
            else:
                return

    def _log_connection(
        self, **settings: str
    ) -> AbstractContextManager[psycopg.Connection[tuple[object, ...]]]:
        # The server would end a stream that is not read for a minute, as while a large entry is replayed.
        return log_connection(self.job.reads_log, self._application, wal_sender_timeout="0", **settings)

    @worded
    def unconfirmed(self) -> int | None:
        return slot.unconfirmed(self.connection, self._slot)

    @worded
    def confirmed(self) -> int | None:
        return slot.confirmed(self.connection, self._slot)

    @worded
    def forget_delivered(self) -> None:
        if self.job.replication.queued and self.job.direction is Direction.FORWARD:
            with connect(self.access.applier, self._application) as connection:
                shadows = version_tables.relations(self.job.replication.tables)
                delivered.forget(connection, self.job.synchronization, shadows)

    @worded
    def drop_log(self) -> None:
        with connect(self.job.reads_log, self._application) as control:
            slot.drop(control, self._slot)

    @contextmanager
    def begin_anew(self) -> Iterator[slot.Begun]:
        """A snapshot while the context is open, from a slot of its own where the log is kept already.

        A copy that is killed leaves the slot and the subscriber as they were. Where some tables alone are copied, the
        others are replayed from that slot, and a lost one is not replaced.
        """
        with self._log_connection() as connection:
            with worded_at(self.access.name):
                if self.job.copied or slot.is_kept(self.connection, self._slot):
                    begun = slot.create_temporary(connection, f"concord_copy_{self.job.transmission}")
                    self.record_copy(begun.level)
                else:
                    self.drop_log()
                    begun = slot.create(connection, self._slot)
            yield begun

    @contextmanager
    def compared(self, published: Published, wait: Callable[[int], None]) -> Iterator[ComparedLog]:
        """A slot that ends with its connection: a comparison that is killed leaves the publisher no log to keep."""
        as_texts, name = replace(published, as_text=True), f"concord_compare_{self.job.transmission}"
        with self._log_connection(lock_timeout=f"{OPEN:.0f}s") as connection:
            begun = self._begun_beside(connection, name)
            wait(begun.level)

            def later() -> Iterator[list[Touched]]:
                frames, end = Frames(connection), self.end_of_log().number
                with worded_at(self.access.name):
                    frames.start(name, begun.level, self._publication, binary=False)
                    read = Entries(as_texts, begun.level, inf, self._own)
                    yield from touched(as_texts, read.batches(frames.until(end)))

            yield ComparedLog(begun.level, begun.snapshot, later)

    def _begun_beside(self, connection: psycopg.Connection[tuple[object, ...]], name: str) -> slot.Begun:
        """No log begins before every transaction has ended that was open.

        Nor does a server notice meanwhile that whoever waits was killed. Raises WriteContended.
        """
        with worded_at(self.access.name):
            try:
                return slot.create_temporary(connection, name)
            except psycopg.errors.LockNotAvailable as error:
                raise WriteContended(
                    f"{self.access.name}: a transaction has been open for more than {OPEN:.0f} s, and no log for a"
                    " comparison begins before it ends. End it (pg_stat_activity and pg_prepared_xacts show it), and"
                    " compare again"
                ) from error
