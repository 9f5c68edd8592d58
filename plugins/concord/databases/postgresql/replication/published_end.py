"""The publisher's end of a replication, however its transactions are captured: its login, and the first copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, in_our_words, run
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.databases.postgresql.sites.end import End
from concord.databases.postgresql.sites.ends import reader_name
from concord.jobs.replication import ReplicationJob


class PublishedEnd(End):
    """Rows are read by the site's reader."""

    job: ReplicationJob

    def __init__(self, job: ReplicationJob) -> None:
        super().__init__(job.source, job.source.reader, job, reader_name(job.synchronization))

    def forget_delivered(self) -> None:
        """Most replications keep nothing for a subscriber but its log, which goes as it is confirmed."""

    def copies(self, published: Published, snapshot: str) -> Mapping[str, Callable[[], Iterator[bytes]]]:
        form = "binary" if published.binary else "text"
        copied = [each for each in published.tables if each.kind in (Kind.ROWS, Kind.VERSIONS)]
        return {each.name: partial(self._copy, each, snapshot, form) for each in copied}

    def _copy(self, table: PublishedTable, snapshot: str, form: str) -> Iterator[bytes]:
        """One table's rows in the snapshot, as COPY sends them."""
        columns = ", ".join(column.sql for column in table.columns)
        with worded_at(self.access.name), self._connect() as connection:
            _join(connection, snapshot)
            where = "" if table.where is None else f" WHERE {table.where}"
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
