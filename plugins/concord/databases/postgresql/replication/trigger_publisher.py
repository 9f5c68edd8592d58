"""The publisher's end where triggers capture: its tables, the operations that they keep, and nothing of its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf

import psycopg

from concord.databases.contract.compared_replica import ComparedLog, Touched
from concord.databases.contract.last_entry import LastEntry
from concord.databases.contract.logged_structures import NOTHING_LOGGED, LoggedStructures
from concord.databases.contract.replication_ends import LogEnd
from concord.databases.postgresql.entries.brake import Brake
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.from_triggers import Operations
from concord.databases.postgresql.entries.read_back import touched
from concord.databases.postgresql.facts import interruptions
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import Connection, connect, one, run
from concord.databases.postgresql.log.published import Published
from concord.databases.postgresql.operations import kept, numbering, triggers
from concord.databases.postgresql.operations.numbering import Begun
from concord.databases.postgresql.replication.published_end import PublishedEnd, worded_at
from concord.databases.postgresql.replication.tables import published_tables
from concord.databases.postgresql.sites.end import worded
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import StructureChanged


class TriggerPublisher(PublishedEnd):
    """Read by the site's reader. The applier numbers entries, and deletes them: it writes what is Concord's own."""

    def __init__(self, job: ReplicationJob) -> None:
        super().__init__(job)
        self._numbering: Connection | None = None
        self._structures = dict[int, str]()
        self._read = frozenset[int]()  # the tables of which operations are read

    @worded
    def inspect_published(self, logged: LoggedStructures = NOTHING_LOGGED) -> Published:
        """The tables with their keys; all have their triggers. Raises NotProvisioned or StructureChanged."""
        self._look(())
        wanted, site = self.job.replication.tables, self.access.name
        tables = read_tables(self.connection, [each.at_site(site) for each in wanted])
        of_rows = published_tables(site, wanted, tables, compared=self.job.replication.compares)
        published = Published(of_rows, as_text=True).without(self.job.copied)
        oids = [each.table.oid for each in published.tables]
        self._structures = triggers.structures(self.connection, oids)
        self._read = frozenset(published.places)
        wrong = triggers.deviations(self.connection, [each.table for each in published.tables])
        captured = [each for each in interruptions.read(self.connection, triggers.SOURCE) if each.oid in oids]
        if wrong := wrong or list(interruptions.deviations(captured)):
            raise StructureChanged(f"{site}: {'; '.join(wrong)}; run `provision`")
        counts = {each.oid: each.interruptions for each in captured if each.interruptions}
        return replace(published, interruptions=counts)

    def logged_structures(self, published: Published) -> LoggedStructures:
        """Operations do not say with which columns they were captured."""
        return {}

    @property
    def _numbers(self) -> Connection:
        if self._numbering is None:
            self._numbering = connect(self.access.applier, self._application)
        return self._numbering

    def close(self) -> None:
        super().close()
        if self._numbering is not None:
            self._numbering.close()

    @worded
    def end_of_log(self) -> LogEnd:
        return numbering.end(self._numbers)

    def refuse_unkept(self, level: int) -> int:
        how = (self.job.replication.name, level, self._read, self.access.name, self.job.target.name)
        return kept.refuse_lost(self.connection, *how, only=not self.job.copied)

    def has_entry(self, last: LastEntry, confirmed: int, level: int) -> bool:
        newest = kept.newest(self.connection, self._structures, confirmed, level)
        if last.committed_at is None:
            return newest is None or newest.number <= last.number
        return newest == (last if last.number > confirmed else None)

    @contextmanager
    def stream(self, level: int, published: Published) -> Iterator[Stream]:
        """Raises SiteUnavailable."""
        job = self.job
        brake = Brake(job.replication.name, job.replication.largest_transaction, job.approved)
        structures = {oid: mark for oid, mark in self._structures.items() if oid in published.places}
        with self._connect() as connection:
            how = (connection, published, structures, level, job.replication.set_based_from, brake)
            yield Stream(self, Operations(*how, job.replication.at_once))

    @worded
    def confirm(self, level: int) -> None:
        """Older runs may still say what was true in their time."""
        kept.confirm(self._numbers, self.job.replication.name, level)

    @worded
    def unconfirmed(self) -> int | None:
        end, known = numbering.end(self._numbers), kept.read(self._numbers, self.job.replication.name)
        return None if known is None else end.number - known.level

    @worded
    def confirmed(self) -> int | None:
        known = kept.read(self.connection, self.job.replication.name)
        return None if known is None else known.level

    @worded
    def drop_log(self) -> None:
        kept.drop(self._numbers, self.job.replication.name)

    @contextmanager
    def begin_anew(self) -> Iterator[Begun]:
        """An exported snapshot while the context is open. Operations are kept from there on, or from before."""
        with worded_at(self.access.name):
            was_kept = bool(self.job.copied) or kept.is_kept(
                self.connection, self.job.replication.name, self._structures
            )
            if not was_kept:
                self.drop_log()
        with self._connect() as holding:
            with worded_at(self.access.name):
                begun = self._begun(holding)
                if was_kept:
                    self.record_copy(begun.level)
            yield begun

    def _begun(self, holding: Connection) -> Begun:
        """In a snapshot in which no other replication's run has numbered entries since."""
        name = self.job.replication.name
        while True:
            run(holding, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            (snapshot,) = one(holding, "SELECT pg_export_snapshot()")
            try:
                level = numbering.begin(
                    self._numbers, snapshot, partial(kept.beginning, name, list(self._structures))
                )
            except psycopg.errors.SerializationFailure:
                run(holding, "ROLLBACK")
            else:
                return Begun(level, snapshot)

    @contextmanager
    def compared(self, published: Published, wait: Callable[[int], None]) -> Iterator[ComparedLog]:
        """No operation is deleted meanwhile that one of both cuts may lack: runs cannot confirm."""
        level = self.end_of_log().number
        wait(level)
        with connect(self.access.applier, self._application) as holding, self._connect() as cut:
            with worded_at(self.access.name):
                run(holding, "BEGIN", kept.LOCKED)
                known = kept.read(holding, self.job.replication.name)
                run(cut, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                (snapshot,) = one(cut, "SELECT pg_export_snapshot()")
            since = 0 if known is None else known.level
            yield ComparedLog(level, snapshot, lambda: self._touched_since(since, published))

    def _touched_since(self, level: int, published: Published) -> Iterator[list[Touched]]:
        """Nothing is replayed, so that no entry is too large."""
        with worded_at(self.access.name), self._connect() as connection:
            later = Operations(connection, published, self._structures, level, inf, Brake(""), inf)
            yield from touched(published, later.batches(self.end_of_log().number))


class Stream:
    """Its entries from one level on."""

    def __init__(self, publisher: TriggerPublisher, operations: Operations) -> None:
        self._publisher, self._operations = publisher, operations

    def batches(self, end: int) -> Iterator[Gathered]:
        with worded_at(self._publisher.access.name):
            yield from self._operations.batches(end)

    def up_to(self, level: int) -> Iterator[Gathered]:
        return self.batches(level)

    def coming(self) -> Iterator[Gathered | None]:
        with worded_at(self._publisher.access.name):
            yield from self._operations.coming(lambda: self._publisher.end_of_log().number)

    @property
    def passed(self) -> int:
        return self._operations.passed

    def confirm(self, level: int) -> None:
        self._publisher.confirm(level)
