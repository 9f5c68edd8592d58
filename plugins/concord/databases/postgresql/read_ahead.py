"""Rows that are about to be written are read by a session beside: the one that writes need not wait for cold pages.

A MERGE looks up one row after the other, so it waits for the disk as often as a page is in no cache: over a table that
is larger than memory, for nearly each row (performance.md: the merge is most of a large link).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread

import psycopg

from concord.databases.postgresql.session import Connection, run
from concord.databases.postgresql.stage import Staged
from concord.errors import ConcordError

#: Fewer are written before a session is logged in.
FROM = 1_000

#: It looks rows up as the write does, by several workers at once, and gives way to whoever alters a table.
_SETTINGS = (
    *(f"SET enable_{each} = off" for each in ("seqscan", "hashjoin", "mergejoin")),
    *(
        f"SET {each} = 0"
        for each in ("min_parallel_table_scan_size", "parallel_setup_cost", "parallel_tuple_cost")
    ),
    "SET lock_timeout = '50ms'",
)


@contextmanager
def reading_ahead(
    connect: Callable[[], Connection], staged: Sequence[Staged], readers: int
) -> Iterator[None]:
    """While the block writes. What goes wrong meanwhile is no matter: the write reads what nobody has read."""
    many = [each for each in staged if each.rows >= FROM]
    if not many:
        yield
        return
    workers = (
        f"SET max_parallel_workers_per_gather = {readers - 1}"  # the session itself is one of the readers
    )
    ahead = _Ahead(connect, [*_SETTINGS, workers], [_rows(each) for each in many])
    thread = Thread(target=ahead.read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ahead.stop()
        thread.join()


def _rows(staged: Staged) -> str:
    """A system column stands in no index: the row itself is read."""
    shape = staged.shape
    return f"SELECT count(t.tableoid) FROM {staged.typed} s JOIN {shape.table.sql} t ON {shape.same_key('t', 's')}"


class _Ahead:
    """The session, which may be stopped by another thread."""

    def __init__(
        self, connect: Callable[[], Connection], settings: Sequence[str], queries: Sequence[str]
    ) -> None:
        self._connect, self._settings, self._queries = connect, settings, queries
        self._connection: Connection | None = None
        self._stopped = False

    def read(self) -> None:
        with suppress(psycopg.Error, ConcordError), self._connect() as self._connection:
            run(self._connection, *self._settings)
            for query in self._queries:
                if self._stopped:
                    return
                run(self._connection, query)

    def stop(self) -> None:
        """What was written need not be read any more."""
        self._stopped = True
        if self._connection is not None and not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.cancel_safe()
