"""The log of a large write is flushed by a session beside, which hurts nobody when it cannot."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from concord.databases.postgresql.facts.connection import Connection, connect, one
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import wal_flush
from concord.databases.postgresql.write.wal_flush import FROM, WAITING, flushing
from concord.messages.errors import SiteUnavailable
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.site import APPLIER, Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)",
    f"INSERT INTO item SELECT n, 'common' FROM generate_series(1, {2 * FROM}) n",
)

WAITS = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn())"


@contextmanager
def walwriter_sleeps(site: Site) -> Iterator[None]:
    """PostgreSQL's own process for it looks every ten seconds, not five times a second: hardly anybody else flushes."""
    site.run("ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()")
    try:
        time.sleep(0.5)  # it looks once more before it hears of it
        yield
    finally:
        site.run("ALTER SYSTEM RESET wal_writer_delay", "SELECT pg_reload_conf()")


@contextmanager
def large_write(site: Site) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A transaction that goes on, and has filled the log's buffers with far more than may wait there."""
    with walwriter_sleeps(site), site.log_in(site.superuser, autocommit=False) as writer:
        content = f"SELECT repeat('x', 1000) FROM generate_series(1, {5 * WAITING // 1000})"
        writer.execute(f"CREATE TABLE large AS {content}".encode())
        assert one(writer, WAITS)[0] > WAITING
        yield writer


def beside(sites: Pair) -> Connection:
    return connect(sites.job().target.applier)


def flushed_within(writer: psycopg.Connection[tuple[object, ...]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while one(writer, WAITS)[0] > WAITING:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def ends_within(session: Connection, seconds: float, statement: str) -> bool:
    session.execute(f"SET statement_timeout = {seconds * 1000}".encode())
    try:
        session.execute(statement.encode())
    except psycopg.errors.QueryCanceled:
        return False
    return True


def test_the_log_is_flushed_while_a_large_write_goes_on(pair: MakePair) -> None:
    sites = pair("CREATE TABLE item (id int PRIMARY KEY)")
    staged = Staged(shape=None, relation="", rows=FROM)  # type: ignore[arg-type] - only counted
    with large_write(sites.capetown) as writer:
        with flushing(lambda: beside(sites), [staged]):
            assert flushed_within(writer, 8), "before the walwriter does it"
        writer.rollback()


def test_whoever_holds_the_sites_row_is_not_waited_for(pair: MakePair) -> None:
    sites = pair("CREATE TABLE item (id int PRIMARY KEY)")
    with large_write(sites.capetown) as writer, beside(sites) as flusher:
        writer.execute("SELECT FROM concord.site FOR UPDATE")
        assert ends_within(flusher, 100, wal_flush._FLUSH)
        writer.rollback()


@pytest.mark.parametrize(("changed", "sessions"), [(FROM - 1, 0), (FROM, 1)])
def test_a_session_logs_in_from_so_many_rows_on(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch, changed: int, sessions: int
) -> None:
    sites = pair(*ITEM)
    opened = []

    def counted() -> Connection:
        opened.append(beside(sites))
        return opened[-1]

    instead(monkeypatch, counted)
    sites.london.run(f"UPDATE item SET token = 'london' WHERE id <= {changed}")

    def wait_for_the_login() -> None:
        """The link itself waits for none that comes too late."""
        end = time.monotonic() + 100
        while len(opened) < sessions:
            assert time.monotonic() < end
            time.sleep(0.01)

    held = At("commit", wait_for_the_login)
    assert carried(sites.run(at=held)).applied == changed
    assert len(opened) == sessions
    sites.capetown.wait_for_the_links_sessions_to_end()
    assert sites.equal


def test_a_link_does_not_end_before_whoever_flushes(pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends then would cut the session off, and PostgreSQL would log it."""
    sites = pair(*ITEM)
    monkeypatch.setattr(wal_flush, "_FLUSH", "SELECT pg_sleep(2)")
    monkeypatch.setattr(wal_flush, "PATIENCE", 10)
    sites.london.run(f"UPDATE item SET token = 'london' WHERE id <= {FROM}")
    before = set(threading.enumerate())
    flushes = At("commit", lambda: time.sleep(0.5))  # it has logged in by then
    assert carried(sites.run(at=flushes)).applied == FROM
    assert set(threading.enumerate()) <= before


def refused(_: Pair) -> Connection:
    raise SiteUnavailable("there are no sessions left")


def ended(sites: Pair) -> Connection:
    """A session that an administrator has ended."""
    connection = beside(sites)
    connection.close()
    return connection


#: The needs of a session that flushes the log.
RIGHT = "UPDATE (heartbeat, acquired, stamp_floor) ON concord.site"


def without_the_right(sites: Pair) -> Connection:
    """As where another version has provisioned the site."""
    sites.capetown.run(f"REVOKE {RIGHT} FROM {APPLIER}")
    return beside(sites)


@pytest.mark.parametrize("session", [refused, ended, without_the_right])
def test_a_session_that_fails_changes_nothing(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch, session: Callable[[Pair], Connection]
) -> None:
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'", "DELETE FROM item WHERE id % 2 = 0")
    instead(monkeypatch, lambda: session(sites))
    assert carried(sites.run()).applied == 2 * FROM
    sites.capetown.run(f"GRANT {RIGHT} TO {APPLIER}")  # whoever looks at a site asks for every right
    assert sites.equal


def instead(monkeypatch: pytest.MonkeyPatch, session: Callable[[], Connection]) -> None:
    """Another session to flush the log in."""
    monkeypatch.setattr(
        "concord.databases.postgresql.write.wal_flush.flushing", lambda _, staged: flushing(session, staged)
    )
