"""Many rows that are about to be written are read by a session beside, which hurts nobody when it cannot."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from concord.databases.postgresql.facts.connection import Connection, connect
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import other_connection, prefetch
from concord.databases.postgresql.write.prefetch import FROM, prefetching
from concord.messages.errors import SiteUnavailable
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)",
    f"INSERT INTO item SELECT n, 'common' FROM generate_series(1, {4 * FROM}) n",
)


def looked_up(site: Site) -> int:
    """How many rows were fetched from the table by any index."""
    site.run("SELECT pg_stat_force_next_flush()")
    return int(site.value("SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'item'"))


@pytest.fixture
def all_is_read(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the session beside has read everything."""
    event, read = threading.Event(), prefetch._read

    def noted(*given: Any) -> None:
        read(*given)
        event.set()

    monkeypatch.setattr(prefetch, "_read", noted)
    return event


@pytest.mark.parametrize(("changed", "times"), [(FROM - 1, 2), (FROM, 3)])
def test_from_so_many_rows_on_each_is_read_by_a_session_beside(
    pair: MakePair, all_is_read: threading.Event, changed: int, times: int
) -> None:
    """Once to see that an update finds its row (T10), once to write it, and once beside."""
    sites = pair(*ITEM)
    # Of pages that a vacuum has seen the index alone tells whether a row is there.
    sites.capetown.run("ALTER TABLE item SET (autovacuum_enabled = off)", "UPDATE item SET token = token")
    sites.settle()
    sites.london.run(f"UPDATE item SET token = 'london' WHERE id <= {changed}")
    before = looked_up(sites.capetown)
    begun = sites.run(at=At("commit", lambda: wait_until(lambda: times == 2 or all_is_read.is_set())))
    sites.capetown.wait_for_the_links_sessions_to_end()
    assert carried(begun).applied == changed
    assert looked_up(sites.capetown) - before == times * changed
    assert sites.equal


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def refused() -> Connection:
    raise SiteUnavailable("there are no sessions left")


def ended(sites: Pair) -> Connection:
    """A session that an administrator has ended."""
    connection = connect(sites.job().target.applier)
    connection.close()
    return connection


@pytest.mark.parametrize("beside", [lambda _: refused(), ended])
def test_a_session_beside_that_fails_changes_nothing(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch, beside: Callable[[Pair], Connection]
) -> None:
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'", "DELETE FROM item WHERE id % 2 = 0")
    instead(monkeypatch, lambda: beside(sites))
    complained: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", complained.append)
    assert carried(sites.run()).applied == 4 * FROM
    assert sites.equal
    assert complained == []


def instead(monkeypatch: pytest.MonkeyPatch, beside: Callable[[], Connection]) -> None:
    """Another session to read ahead in."""
    monkeypatch.setattr(
        "concord.databases.postgresql.sites.ends.prefetching",
        lambda _, staged: prefetching(beside, staged),
    )


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the write has ended."""
    event = threading.Event()
    monkeypatch.setattr(other_connection, "Event", lambda: event)
    return event


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch, written: threading.Event) -> list[str]:
    """The pages that are read ahead: a page of staging to a statement, of which the second outlasts the write."""
    made: list[str] = []
    rows = prefetch._rows

    def slow(staged: Staged, first: int) -> str:
        made.append(rows(staged, first))
        assert len(made) < 2 or written.wait(100)
        return made[-1]

    monkeypatch.setattr(prefetch, "PAGES", 1)
    monkeypatch.setattr(prefetch, "_rows", slow)
    return made


def test_what_is_written_before_it_is_read_need_not_be_read_any_more(
    pair: MakePair, statements: list[str]
) -> None:
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'")
    second_is_under_way = At("commit", lambda: wait_until(lambda: len(statements) == 2))
    assert carried(sites.run(at=second_is_under_way)).applied == 4 * FROM
    assert len(statements) == 2


def test_a_session_beside_that_comes_too_late_reads_nothing(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch, statements: list[str], written: threading.Event
) -> None:
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'")

    def late() -> Connection:
        assert written.wait(100)
        return connect(sites.job().target.applier)

    instead(monkeypatch, late)
    assert carried(sites.run()).applied == 4 * FROM
    assert statements == []
