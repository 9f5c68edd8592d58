"""Work that runs long says how far it is: an initialization, a comparison, a link; a short one says nothing."""

import time
from collections.abc import Callable

import pytest

from concord.databases.postgresql.compare import queries as asking
from concord.databases.postgresql.initialize.both_sites import Initialization
from concord.jobs.comparison import CompareJob, Repair
from concord.jobs.initialization import How
from concord.messages import pace
from concord.messages.pace import Pace
from spark_jobs.compare import compare
from spark_jobs.initialize import initialize
from spark_jobs.link import transmit
from spark_jobs.snapshot import refresh
from tests.given.fixtures import MakePair
from tests.given.snapshot_sites import Copies
from tests.given.strangers import forget, initialization, unstamped
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = ("CREATE TABLE book (id int PRIMARY KEY, title text)",)
ROWS = 5_000
MANY = (f"INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, {ROWS}) n", "ANALYZE book")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if what takes a while took long."""
    monkeypatch.setattr(pace, "EVERY", 0.005)


def never(step: str) -> None:
    """Nothing is done at any step."""


def slowly(step: str) -> None:
    """As over a slow line."""
    if step == "chunk_commit":
        time.sleep(0.02)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("how", [How.LOAD, How.MERGE])
def test_an_initialization_says_how_many_of_about_how_many_rows(pair: MakePair, how: How) -> None:
    sites = pair(*BOOK)
    forget(sites)
    unstamped(sites.london, *MANY)
    heard: list[Pace] = []
    chunk_rows = 200 if how is How.LOAD else 500  # each chunk of a merge takes Spark two jobs
    job = initialization(sites, how.value, chunk_rows=chunk_rows)

    initialize(job, sites.spark, slowly, heard.append)

    told = [each for each in heard if each.work == "initialize"]
    assert {(each.what, each.of) for each in told} == {("public.book", ROWS)}
    counted = [each.done for each in told]
    least = 15 if how is How.LOAD else 5  # a load has 25 ranges in 13 windows, and each range is counted
    assert len(set(counted)) > least
    assert max(counted) <= ROWS
    assert any(each.seconds_left for each in told)


@pytest.mark.usefixtures("eager")
def test_the_proof_that_sites_are_equal_says_which_table_it_is_at(pair: MakePair) -> None:
    sites = pair(*BOOK)
    forget(sites)
    for site in sites.sites:
        unstamped(site, *MANY)
    heard: list[Pace] = []
    with Initialization(initialization(sites)) as pair_of_ends:
        assert pair_of_ends.settle_equal(heard.append) is not None
    assert {(each.work, each.what, each.of) for each in heard} == {("prove equal", "public.book", ROWS)}


@pytest.mark.usefixtures("eager")
def test_a_comparison_says_how_much_it_has_read(pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ROWS_PER_QUESTION", 100)  # several questions, as of a large table
    sites = pair(*BOOK)
    for site in sites.sites:
        unstamped(site, *MANY)
    heard: list[Pace] = []
    compare(CompareJob(link=sites.job(), repair=Repair.NONE), sites.spark, never, heard.append)
    assert {(each.work, each.what, each.of) for each in heard} == {("compare", "public.book", ROWS)}
    assert max(each.done for each in heard) > 0


def edited(sites: Pair) -> None:
    sites.london.run(*MANY)


def met(sites: Pair) -> None:
    """So that Spark has something to join."""
    sites.london.run(*MANY)
    sites.capetown.run("INSERT INTO book VALUES (7, 'another')")


@pytest.mark.usefixtures("eager", "carried_by_spark")
@pytest.mark.parametrize("edit", [edited, met], ids=["straight", "joined"])
def test_a_long_link_says_what_it_stages_and_what_it_writes(
    pair: MakePair, edit: Callable[[Pair], None]
) -> None:
    sites = pair(*BOOK)
    edit(sites)
    heard: list[Pace] = []
    transmit(sites.job(), sites.spark, never, heard.append)
    assert {(each.work, each.what, each.of) for each in heard} == {
        ("stage", "public.book", ROWS),
        ("write", "public.book", ROWS),
    }


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("incremental", [True, False])
def test_a_refresh_of_a_snapshot_says_what_it_stages_and_what_it_writes(
    copies: Copies, *, incremental: bool
) -> None:
    copies.london.run(*BOOK)
    copies.define("books", "incremental" if incremental else "non_incremental", "public.book", "public.copy")
    copies.provision()
    if incremental:
        copies.refresh("books")
    copies.london.run(*MANY)
    heard: list[Pace] = []
    refresh(copies.job("books"), copies.spark, never, heard.append)
    assert {(each.work, each.what, each.of) for each in heard} == {
        ("stage", "public.copy", ROWS),
        ("write", "public.copy", ROWS),
    }
    assert copies.capetown.value("SELECT count(*) FROM copy") == ROWS


@pytest.mark.usefixtures("eager")
def test_a_refresh_of_a_view_is_not_counted_and_says_how_long_it_has_taken(copies: Copies) -> None:
    copies.london.run(*BOOK, *MANY, "CREATE VIEW titles AS SELECT id, title FROM book")
    copies.define("titles", "non_incremental", "public.titles", "public.copy")
    copies.provision()
    for plan_only in (True, False):
        heard: list[Pace] = []
        refresh(copies.job("titles", plan_only=plan_only), copies.spark, never, heard.append)
        works = {"plan"} if plan_only else {"stage", "write"}
        assert {each.work for each in heard} == works
        assert all("s so far" in str(each) for each in heard if each.work != "write")


def test_a_short_run_says_nothing(pair: MakePair) -> None:
    sites = pair(*BOOK)
    sites.london.run("INSERT INTO book VALUES (1, 'one')")
    heard: list[Pace] = []
    began = time.monotonic()
    transmit(sites.job(), sites.spark, never, heard.append)
    assert time.monotonic() - began > pace.EVERY or heard == []
    assert all(each.seconds >= pace.EVERY for each in heard)
