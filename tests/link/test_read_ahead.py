"""Many rows that are about to be written are read by a session beside, which hurts nobody when it cannot."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from concord.databases.postgresql import read_ahead
from concord.databases.postgresql.ends import Target
from concord.databases.postgresql.read_ahead import FROM, reading_ahead
from concord.databases.postgresql.session import Connection, connect
from concord.databases.postgresql.stage import Staged
from concord.errors import SiteUnavailable
from tests.link.conftest import MakePair
from tests.link.pair import At, Pair, Site, carried

pytestmark = pytest.mark.spark

ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)",
    f"INSERT INTO item SELECT n, 'common' FROM generate_series(1, {4 * FROM}) n",
)


def looked_up(site: Site) -> int:
    """How many rows were fetched from the table by any index."""
    site.run("SELECT pg_stat_force_next_flush()")
    return int(site.value("SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'item'"))


@pytest.mark.parametrize(("changed", "times"), [(FROM - 1, 1), (FROM, 2)])
def test_from_so_many_rows_on_each_is_read_by_a_session_beside(
    pair: MakePair, changed: int, times: int
) -> None:
    sites = pair(*ITEM)
    sites.london.run(f"UPDATE item SET token = 'london' WHERE id <= {changed}")
    before = looked_up(sites.capetown)
    begun = sites.run(
        at=At("commit", lambda: time.sleep(1))
    )  # the session beside has all the time that it needs
    sites.capetown.wait_for_the_links_sessions_to_end()
    assert carried(begun).applied == changed
    assert looked_up(sites.capetown) - before == times * changed
    assert sites.equal


def refused() -> Connection:
    raise SiteUnavailable("there are no sessions left")


def in_vain(sites: Pair) -> Connection:
    """A session whose first statement fails."""
    connection = connect(sites.job().target.applier)
    connection.execute("SET statement_timeout = '1ms'")
    return connection


@pytest.mark.parametrize("beside", [lambda _: refused(), in_vain])
def test_a_session_beside_that_fails_changes_nothing(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch, beside: Callable[[Pair], Connection]
) -> None:
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london'", "DELETE FROM item WHERE id % 2 = 0")
    plain = reading_ahead
    monkeypatch.setattr(
        "concord.databases.postgresql.ends.reading_ahead",
        lambda _, staged, readers: plain(lambda: beside(sites), staged, readers),
    )
    assert carried(sites.run()).applied == 4 * FROM
    assert sites.equal


@pytest.fixture
def slow(pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Pair, Staged]]:
    """Rows whose reading takes a minute."""
    sites = pair(*ITEM)
    monkeypatch.setattr(read_ahead, "_rows", lambda staged: "SELECT pg_sleep(60)")
    target = Target(sites.job())
    ((shape,), _) = target.inspect(sites.tables)
    yield sites, Staged(shape, "nowhere", rows=FROM)
    target.close()


def reading(site: Site) -> list[tuple[Any, ...]]:
    return site.rows(
        "SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
    )


def test_what_is_written_before_it_is_read_need_not_be_read_any_more(slow: tuple[Pair, Staged]) -> None:
    sites, staged = slow
    with reading_ahead(lambda: connect(sites.job().target.applier), [staged], 2):
        while not reading(sites.capetown):
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < 10
    assert reading(sites.capetown) == []


def test_a_session_beside_that_comes_too_late_reads_nothing(slow: tuple[Pair, Staged]) -> None:
    sites, staged = slow

    def late() -> Connection:
        time.sleep(0.5)
        return connect(sites.job().target.applier)

    began = time.monotonic()
    with reading_ahead(late, [staged], 2):
        pass
    assert time.monotonic() - began < 10
