"""PostgreSQL's own logical replication of the table, from London to Cape Town: one way, no conflicts, no log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.bookings import TABLE
from benchmarks.comparison import WrongResult
from benchmarks.databases import Database, Pair
from benchmarks.rival import PATIENCE, Program, Rival

#: A server starts no subscription's worker sooner after the last one; the default is 5 s.
SETTINGS = {"wal_level": "logical", "wal_retrieve_retry_interval": "100ms"}

NAME = "bookings"  #: of the publication, the subscription and its slot

_POLL_SECONDS = 0.01

#: Nothing of it can be missed: the subscriber has confirmed all edits, and there are none since.
_PASS_OVER = f"SELECT pg_replication_slot_advance('{NAME}', pg_current_wal_flush_lsn())"
_CONFIRMED = f"SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots WHERE slot_name = '{NAME}'"
_AT_REST = f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{NAME}'"


@contextmanager
def subscribed(pair: Pair) -> Iterator[Rival]:
    """Cape Town's subscription to London's table, disabled until the edits are to be carried; dropped in the end.

    Edits of the other programs' databases stand in the same write-ahead log, and are passed over before a measurement.
    """
    pair.london.run(f"CREATE PUBLICATION {NAME} FOR TABLE {TABLE.name}")
    options = "copy_data = false, enabled = false, create_slot = true, binary = true"
    pair.capetown.run(
        f"CREATE SUBSCRIPTION {NAME} CONNECTION '{_address(pair.london)}' PUBLICATION {NAME} WITH ({options})"
    )
    try:
        yield Rival(Program.LOGICAL, pair, lambda: _carry(pair), lambda: pair.london.run(_PASS_OVER))
    finally:
        pair.capetown.run(f"ALTER SUBSCRIPTION {NAME} DISABLE", f"DROP SUBSCRIPTION {NAME}")


def _address(database: Database) -> str:
    server = database.server
    place = f"host={server.host} port={server.port} dbname={database.name}"
    return f"{place} user={server.superuser} password={server.password}"


def _carry(pair: Pair) -> float:
    """From enabling the subscription until Cape Town has confirmed what London had written before."""
    (position,) = pair.london.row("SELECT pg_current_wal_flush_lsn()::text")
    began = time.monotonic()
    with enabled(pair):
        _wait(pair.london, _CONFIRMED, str(position))
        return time.monotonic() - began


@contextmanager
def enabled(pair: Pair) -> Iterator[None]:
    """The subscription at work while the block runs."""
    pair.capetown.run(f"ALTER SUBSCRIPTION {NAME} ENABLE")
    yield
    pair.capetown.run(f"ALTER SUBSCRIPTION {NAME} DISABLE")
    _wait(pair.london, _AT_REST)


def _wait(database: Database, query: str, *parameters: str) -> None:
    """Until the query says yes; raises WrongResult when it never does."""
    deadline = time.monotonic() + PATIENCE
    with database.connect() as connection:
        while connection.execute(query.encode(), parameters).fetchone() != (True,):
            if time.monotonic() > deadline:
                raise WrongResult(f"logical replication into {database.name} has not caught up")
            time.sleep(_POLL_SECONDS)
