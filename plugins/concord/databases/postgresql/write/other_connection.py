"""A connection beside the write does the work that only makes the write faster: when that fails, nothing is lost but
time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg

from concord.databases.postgresql.facts.connection import Connection
from concord.messages.errors import ConcordError


@contextmanager
def in_other_connection(
    connect: Callable[[], Connection], work: Callable[[Connection, Event], None], patience: float
) -> Iterator[Thread]:
    """While the block writes, `work` is done in a connection of its own, and is told when the block has ended.

    So long (s) that end waits for the work's. Whoever waits longer joins the thread.
    """
    written = Event()
    thread = Thread(target=_work, args=(connect, work, written), daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        written.set()
        thread.join(patience)


def _work(
    connect: Callable[[], Connection], work: Callable[[Connection, Event], None], written: Event
) -> None:
    with suppress(psycopg.Error, ConcordError), connect() as connection:
        work(connection, written)
