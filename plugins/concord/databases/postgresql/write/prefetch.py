"""Rows that are about to be written are read by a connection beside: the one that writes need not wait for cold pages.

A MERGE looks up one row after the other, so it waits for the disk as often as a page is in no cache. Over a table
that is larger than memory it waits for nearly each row (performance.md: the merge is most of a large link).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import Event, Thread

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, one, run
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write.other_connection import in_other_connection

#: Fewer are written before a connection is logged in.
FROM = 1_000

#: Pages of staging to a statement, some thousand rows: between two of them whoever waits to alter the table goes first.
PAGES = 100

#: The write has ended, and waits so long (s) for a login or a statement that is under way: what is read is locked.
PATIENCE = 10.0

#: It looks rows up as the write does.
_SETTINGS = (
    *(f"SET enable_{each} = off" for each in ("seqscan", "hashjoin", "mergejoin")),
    "SET lock_timeout = '50ms'",
    "SET statement_timeout = '10s'",
)


def prefetching(
    connect: Callable[[], Connection], staged: Sequence[Staged]
) -> AbstractContextManager[Thread | None]:
    """While the block writes. The write reads what nobody has read."""
    many = [each for each in staged if each.rows >= FROM]
    return in_other_connection(connect, partial(_read, many), PATIENCE) if many else nullcontext()


def _read(many: Sequence[Staged], connection: Connection, written: Event) -> None:
    """Until all is read or written."""
    run(connection, *_SETTINGS)
    for staged in many:
        size = f"pg_relation_size({literal(staged.sql)}::regclass) / current_setting('block_size')::int"
        (pages,) = one(connection, f"SELECT {size}")
        for first in range(0, pages, PAGES):
            if written.is_set():
                return
            run(connection, _rows(staged, first))


def _rows(staged: Staged, first: int) -> str:
    """Those of some pages of staging. A system column stands in no index: the row itself is read."""
    shape, pages = staged.shape, f"ctid >= '({first},0)' AND ctid < '({first + PAGES},0)'"
    keys = ", ".join(f"{column.type.incoming(shape.alias(column))} AS {column.sql}" for column in shape.key)
    some = f"(SELECT {keys} FROM {staged.sql} WHERE {pages})"
    return f"SELECT count(t.tableoid) FROM {some} s JOIN {shape.table.sql} t ON {shape.same_key('t', 's')}"
