"""The publisher's end of a replication, however its transactions are captured: its login, and the first copy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

import psycopg

from concord.databases.contract.consumed import ConsumedTable, Whole
from concord.databases.contract.last_entry import LastEntry, restored
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.compare.replica import Replica, replica_shape
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.read_back import whole_entries
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, run
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.databases.postgresql.replication import consumed_since, recorded_copies
from concord.databases.postgresql.sites.end import End, worded
from concord.databases.postgresql.sites.ends import reader_name
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import HistoryLost


class Batches(Protocol):
    """The log from one level on."""

    def batches(self, end: int) -> Iterator[Gathered]:
        """Whole entries; only a large one comes in several."""


class PublishedEnd(End, ABC):
    """Rows are read by the site's reader."""

    job: ReplicationJob

    def __init__(self, job: ReplicationJob) -> None:
        super().__init__(job.source, job.source.reader, job, reader_name(job.synchronization))

    @worded
    def refuse_lost(self, level: int, last_entry: Callable[[], LastEntry | None]) -> None:
        """Up to the place that was confirmed, this very log was replayed: no look into it is needed."""
        confirmed = self.refuse_unkept(level)
        last = last_entry() if confirmed < level else None
        if last is not None and not (
            self._knows_copy(last, confirmed) and self.has_entry(last, confirmed, level)
        ):
            raise HistoryLost(restored(self.access.name, self.job.target.name, self.job.replication.name))

    @abstractmethod
    def refuse_unkept(self, level: int) -> int:
        """Returns up to which number the log is confirmed. Raises HistoryLost where it does not go on at the level."""

    @abstractmethod
    def has_entry(self, last: LastEntry, confirmed: int, level: int) -> bool:
        """Has the log, which is confirmed so far, this last entry, and none of others between it and the level?"""

    def _knows_copy(self, last: LastEntry, confirmed: int) -> bool:
        """Was the subscriber's copy taken from this publisher, and not from one that was restored since?

        The publisher has confirmed a number from the copy on, or has a record of the copy. The reverse direction copies
        no rows.
        """
        is_copy = last.committed_at is None and self.job.direction is Direction.FORWARD
        return (
            not is_copy
            or confirmed >= last.number
            or recorded_copies.is_recorded(self.connection, self.job.replication.name, last.number)
        )

    def record_copy(self, level: int) -> None:
        """Record a copy at this level, which is taken while the log before it is kept."""
        with connect(self.access.applier, self._application) as connection:
            recorded_copies.record(connection, self.job.replication.name, level, self.confirmed() or 0)

    @abstractmethod
    def confirmed(self) -> int | None:
        """Up to which number the log need not be kept; None where none is kept."""

    def forget_delivered(self) -> None:
        """Most replications keep nothing for a subscriber but its log, which goes as it is confirmed."""

    def copies(self, published: Published, snapshot: str) -> Mapping[str, Callable[[], Iterator[bytes]]]:
        form = "binary" if published.binary else "text"
        kinds = [Kind.ROWS, Kind.VERSIONS]
        if self.job.replication.queued and self.job.replication.conflict.report_to_subscriber:
            kinds.append(Kind.COMPENSATIONS)
        copied = [each for each in published.tables if each.kind in kinds]
        return {each.name: partial(self._copy, each, snapshot, form) for each in copied}

    def entries(self, level: int, published: Published, end: int) -> Generator[Whole]:
        """Values travel as texts, whatever the servers are."""
        as_texts = replace(published, as_text=True)
        with self.stream(level, as_texts) as stream:
            yield from whole_entries(as_texts, stream.batches(end))

    @abstractmethod
    def stream(self, level: int, published: Published) -> AbstractContextManager[Batches]:
        """The log from one level on."""

    def begin_consumed(self, published: Published) -> None:
        with worded_at(self.access.name), connect(self.access.applier, self._application) as connection:
            consumed_since.begin(connection, self.job.replication.name, published)

    def gaps(self, published: Published) -> list[str]:
        with worded_at(self.access.name), connect(self.access.applier, self._application) as connection:
            return consumed_since.gaps(connection, self.job.replication.name, published)

    def consumed_tables(self, published: Published) -> list[ConsumedTable]:
        """All but Concord's own."""
        return [
            ConsumedTable(each.name, {column.name: column.type.spark for column in each.columns})
            for each in published.tables
            if each.kind is Kind.ROWS
        ]

    def replica(self, published: Published, snapshot: str) -> Replica:
        """The rows that it publishes, with the columns that travel."""
        site = self.access.name
        shapes = [
            replica_shape(wanted, site, each.table, each.columns)
            for wanted, each in zip(self.job.replication.tables, published.tables, strict=False)
        ]
        return Replica(self.job, self.access, self._login, shapes, snapshot)

    @property
    def _reports(self) -> str:
        """The compensations that hold an entry of the conflict log for this subscriber."""
        return f"replication = {literal(self.job.synchronization)} AND conflict IS NOT NULL"

    def _copy(self, table: PublishedTable, snapshot: str, form: str) -> Iterator[bytes]:
        """One table's rows in the snapshot, as COPY sends them."""
        columns = ", ".join(column.sql for column in table.columns)
        with worded_at(self.access.name), self._connect() as connection:
            _join(connection, snapshot)
            chosen = self._reports if table.kind is Kind.COMPENSATIONS else table.where
            where = "" if chosen is None else f" WHERE {chosen}"
            query = f"COPY (SELECT {columns} FROM ONLY {table.table.sql}{where}) TO STDOUT (FORMAT {form})"
            with connection.cursor().copy(query.encode()) as copy:
                for block in copy:
                    yield bytes(block)


def _join(connection: Connection, snapshot: str) -> None:
    run(
        connection,
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(snapshot)}",
    )


@contextmanager
def worded_at(site: str) -> Iterator[None]:
    """Whatever the driver raises leaves as an error in our words."""
    try:
        yield
    except psycopg.Error as error:
        raise in_our_words(error, site) from error
