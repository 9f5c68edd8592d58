"""The log of a snapshot's source is the shadow table: what stands in it, who reads it, and when it is purged."""

import psycopg
import pytest

from concord.jobs.upkeep import CarryingSite, SiteCleanup
from concord.messages.errors import ConcordError
from concord.tables.replication_set import ReplicatedTable
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.forgotten import forget
from tests.given.snapshot_sites import LATE, Copies, content
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 20) n",
)


def tracked(copies: Copies) -> ReplicatedTable:
    found = copies.snapshots["late"].tracked
    assert found is not None
    return found


def log(copies: Copies) -> str:
    (name,) = copies.london.rows(
        f"SELECT shadow FROM concord.replicated_table WHERE name = '{tracked(copies).name}'"
    )
    return f'concord."{name[0]}"'


def cleaned(copies: Copies) -> SiteCleanup:
    (report,) = forget([CarryingSite(copies.london.access, {tracked(copies).name: {}}, (tracked(copies),))])
    return report


def test_the_log_has_one_row_for_each_edited_row_with_its_key_time_and_version(late: Copies) -> None:
    """S4-096, S4-102 to S4-105: at most one row per source row, in which the newest edit replaces those before."""
    late.london.run(
        "UPDATE flight SET delay = 70 WHERE id = 1",
        "UPDATE flight SET delay = 71 WHERE id = 1",
        "DELETE FROM flight WHERE id = 2",
    )
    found = late.london.rows(
        f"SELECT id, deleted, origin, changed_at, derived FROM {log(late)} WHERE id IN (1, 2) ORDER BY id"
    )
    assert [row[:3] for row in found] == [(1, False, "london#1"), (2, True, "london#1")]
    assert len({row[2:] for row in found}) == 2
    assert all(row[3] > 1_700_000_000_000_000 for row in found)
    with pytest.raises(psycopg.errors.UniqueViolation):
        late.london.run(f"INSERT INTO {log(late)} SELECT * FROM {log(late)} WHERE id = 1")


def test_a_refresh_without_the_log_is_refused(late: Copies) -> None:
    """S4-011."""
    before = late.capetown.rows(LATE)
    late.london.run("UPDATE flight SET delay = 72 WHERE id = 1", f"DROP TABLE {log(late)}")
    with pytest.raises(ConcordError):
        late.refresh("late")
    assert late.capetown.rows(LATE) == before


def test_a_snapshot_is_remembered_with_the_place_up_to_which_it_is_refreshed(late: Copies) -> None:
    """S4-101: at both ends."""
    query = "SELECT history -> 0 FROM concord.link_state WHERE link = 'snapshot/late/forward'"
    first = [site.value(query) for site in (late.london, late.capetown)]
    late.london.run("UPDATE flight SET delay = 73 WHERE id = 1")
    late.refresh("late")
    second = [site.value(query) for site in (late.london, late.capetown)]
    assert first[0] == first[1]
    assert second[0] == second[1] != first[0]


def test_several_transactions_of_the_source_arrive_in_one_of_the_copy(late: Copies) -> None:
    """S4-106: a reader sees all of a refresh or nothing."""
    late.london.run(
        "INSERT INTO flight VALUES (30, 'JFK', 90)",
        "INSERT INTO flight VALUES (31, 'JFK', 91)",
        "INSERT INTO flight VALUES (32, 'JFK', 92)",
    )
    late.refresh("late")
    assert late.capetown.rows("SELECT count(*), count(DISTINCT xmin::text) FROM late WHERE id >= 30") == [
        (3, 1)
    ]


def test_rows_of_the_log_wait_for_the_snapshot_and_then_all_go(late: Copies) -> None:
    """S4-018: edited rows as well as deleted ones; then the next refresh goes on as ever."""
    late.refresh("late")
    cleaned(late)
    late.london.run("UPDATE flight SET delay = delay + 1", "DELETE FROM flight WHERE id = 3")
    held = late.london.value(f"SELECT count(*) FROM {log(late)}")
    waiting = cleaned(late)
    assert (waiting.removed, waiting.forgotten) == (0, 0)
    assert [(each.link, each.versions) for each in waiting.held_back] == [("snapshot/late/forward", held)]
    late.refresh("late")
    gone = cleaned(late)
    assert (gone.removed, gone.forgotten) == (1, held - 1)
    assert late.london.value(f"SELECT count(*) FROM {log(late)}") == 0
    late.london.run("UPDATE flight SET delay = 74 WHERE id = 1")
    assert not late.refresh("late").full
    content(late)


def test_nothing_goes_before_the_first_refresh(late: Copies) -> None:
    """S4-019."""
    late.london.run("DELETE FROM concord.link_state", "UPDATE flight SET delay = 75 WHERE id = 1")
    held = late.london.value(f"SELECT count(*) FROM {log(late)}")
    report = cleaned(late)
    assert report.problem is not None
    assert "no snapshot has taken" in report.problem
    assert late.london.value(f"SELECT count(*) FROM {log(late)}") == held > 0


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def test_an_entry_that_comes_twice_is_applied_once(sites: Pair) -> None:
    """S4-099, S4-107: the target's own shadow table remembers what a link wrote there."""

    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    sites.london.run("UPDATE book SET title = 'new' WHERE id = 5")
    with pytest.raises(Killed):
        sites.run("forward", At("remember", die))
    here, there = (
        site.rows('SELECT id, origin, changed_at FROM concord."public.book"') for site in sites.sites
    )
    assert here == there != []
    report = sites.run("forward")
    assert (report.total("acquired"), report.total("converged"), report.total("applied")) == (1, 1, 0)
