"""A connection beside a large write flushes the WAL while the write goes on.

A write fills the WAL buffers: 16 MB at most, unless set, a twentieth of a second of it. It then writes them out
itself, page by page, and waits for the disk at the end of each segment. That takes up to a quarter of its time. A
smaller one leaves it all to its commit. PostgreSQL's own walwriter looks after them five times a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Event, Thread
from time import monotonic

from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write.other_connection import in_other_connection

#: After a checkpoint each page is logged whole. So many rows, in all tables, may be as many pages: their commit
#: waits longer for the disk than a login takes.
FROM = 1_000

#: How often one looks (s), and how much of the log must wait (bytes).
PAUSE, WAITING = 0.005, 1_000_000

#: How long a statement looks (s), unless nobody has written since it last did. A far site need not be asked each
#: time, and a log of statements shows few.
ROUND = 0.1

#: How long one rests after it (s); twice as long, up to ROUND, each time that nobody had written.
REST = 0.01

#: The link has ended, and waits so long (s) for a statement: PostgreSQL would log that its connection was cut off.
PATIENCE = ROUND

_SETTINGS = (
    "SET synchronous_commit = local",  # the write itself waits for whoever else must have it
    "SET statement_timeout = '10s'",
)

#: A commit flushes whatever the log holds. To lock a row is the least that has one, and leaves no row behind.
_FLUSH = f"""
DO $$
DECLARE
  began timestamptz := clock_timestamp();
  seen pg_lsn;
BEGIN
  LOOP
    seen := pg_current_wal_insert_lsn();
    PERFORM FROM concord.site WHERE pg_wal_lsn_diff(seen, pg_current_wal_flush_lsn()) > {WAITING}
      FOR KEY SHARE SKIP LOCKED;
    COMMIT;
    PERFORM pg_sleep({PAUSE});
    EXIT WHEN seen = pg_current_wal_insert_lsn() OR clock_timestamp() > began + interval '{ROUND} s';
  END LOOP;
END $$"""


def flushing(
    connect: Callable[[], Connection], staged: Sequence[Staged]
) -> AbstractContextManager[Thread | None]:
    """While the block writes. The write flushes what nobody has flushed."""
    many = sum(each.rows for each in staged) >= FROM
    return in_other_connection(connect, _flush, patience=0) if many else nullcontext()


def _flush(connection: Connection, written: Event) -> None:
    run(connection, *_SETTINGS)
    rest = REST
    while not written.wait(rest):
        began = monotonic()
        run(connection, _FLUSH)
        rest = REST if monotonic() - began > ROUND else min(2 * rest, ROUND)
