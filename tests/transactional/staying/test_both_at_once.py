"""Both directions stay side by side, and end together (S2-06, S2-30)."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise
from threading import Event

import pytest

from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import EntryConflict, EntryRefused
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Outcomes, Replicated
from tests.given.site import Site

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)",)
LONG = 240.0
LIMIT = 100.0  #: what only a run that stays in vain exceeds, however busy the machine


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(DDL, "public.movement", updates="both")
    made.initialize_both_ways()
    return made


@contextmanager
def staying(sites: Replicated) -> Iterator[tuple[Future[Outcomes], Event]]:
    """Both directions in the background, and the event that ends them."""
    end = Event()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(sites.stay_both, LONG, end.is_set)
        try:
            yield run, end
        finally:
            end.set()


def seen(site: Site, key: int) -> float:
    """Wait until the movement is there; the seconds that it took."""
    began = time.monotonic()
    while not site.rows(f"SELECT FROM movement WHERE id = {key}"):
        assert time.monotonic() < began + LIMIT
        time.sleep(0.01)
    return time.monotonic() - began


def test_a_commit_of_either_site_is_at_the_other_at_once_and_no_direction_waits_for_the_other(
    sites: Replicated,
) -> None:
    with staying(sites) as (run, end):
        sites.london.run("INSERT INTO movement VALUES (0, 0)")
        sites.capetown.run("INSERT INTO movement VALUES (1000, 0)")
        seen(sites.capetown, 0)
        seen(sites.london, 1000)
        there, back = [], []
        for n in range(1, 5):
            sites.london.run(f"INSERT INTO movement VALUES ({n}, 0)")
            there.append(seen(sites.capetown, n))
            sites.capetown.run(f"INSERT INTO movement VALUES ({1000 + n}, 0)")
            back.append(seen(sites.london, 1000 + n))
        assert max(min(there), min(back)) < 2, "the quickest each way: the machine may be busy"
        end.set()
        outcomes = run.result(LIMIT)
        entries = [each.entries for each in outcomes if isinstance(each, ReplicationReport)]
    assert entries == [5, 5], "none travels back"
    assert sites.are_equal()


def test_no_transaction_is_lost_or_replayed_twice_while_runs_of_both_directions_follow_one_another(
    sites: Replicated,
) -> None:
    runs: list[tuple[ReplicationReport, ...]] = []

    def write(site: Site, first: int) -> None:
        """In three parts, each followed by the end of a run that began before."""
        for part in (range(150), range(150, 300), range(300, 400)):
            ended = len(runs)
            site.run(*(f"INSERT INTO movement VALUES ({first + n}, 0)" for n in part))
            end = time.monotonic() + LIMIT
            while len(runs) == ended:
                assert time.monotonic() < end
                time.sleep(0.01)

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, sites.london, 0), pool.submit(write, sites.capetown, 1000)]
        while not all(each.done() for each in writers) or sum(each.entries for each in runs[-1]):
            outcomes = sites.stay_both(0.4)
            reports = tuple(each for each in outcomes if isinstance(each, ReplicationReport))
            assert len(reports) == 2, outcomes
            runs.append(reports)
    assert [sum(each.entries for each in way) for way in zip(*runs, strict=True)] == [400, 400]
    assert len(runs) > 2
    for way in zip(*runs, strict=True):
        assert all(one.level_to == other.level_from for one, other in pairwise(way))
    assert sites.are_equal()


def test_a_conflict_stops_both_directions(sites: Replicated) -> None:
    """S2-21: neither goes on beside a row of which nobody has said whose it is."""
    sites.london.run("INSERT INTO movement VALUES (1, 0)")
    sites.run_both()
    sites.london.run("UPDATE movement SET amount = 1")
    sites.capetown.run("UPDATE movement SET amount = 2")
    began = time.monotonic()
    outcomes = sites.stay_both(LONG)
    assert time.monotonic() - began < LIMIT
    assert any(isinstance(each, EntryConflict) for each in outcomes)
    assert [site.rows("SELECT amount FROM movement") for site in sites.sites] == [[(1,)], [(2,)]]


def test_a_transaction_that_stops_one_direction_ends_the_other_where_its_log_ends(
    replicated: Make,
) -> None:
    """It need not stay: a run a minute later carries what comes meanwhile."""
    sites = replicated(DDL, "public.movement", updates="both", throttle={"operations_per_second": 50})
    sites.initialize_both_ways()
    sites.capetown.run("ALTER TABLE movement ADD CHECK (amount < 5)")
    sites.london.run("INSERT INTO movement VALUES (1, 7)")
    sites.capetown.run(*(f"INSERT INTO movement VALUES ({n}, 1)" for n in range(100, 250)))
    with staying(sites) as (run, _):
        assert wait([run], timeout=LIMIT).done, "it stays although the other has stopped"
        refused, back = run.result()
    assert isinstance(refused, EntryRefused)
    assert isinstance(back, ReplicationReport)
    assert back.entries == 150, "in batches of 50"


def test_a_direction_that_waits_for_its_log_ends_with_the_other(sites: Replicated) -> None:
    sites.capetown.run("ALTER TABLE movement ADD CHECK (amount < 5)")
    with staying(sites) as (run, _):
        sites.capetown.run("INSERT INTO movement VALUES (1, 1)")
        seen(sites.london, 1)
        sites.london.run("INSERT INTO movement VALUES (2, 7)")
        assert wait([run], timeout=LIMIT).done, "the other one stays"
        refused, back = run.result()
    assert isinstance(refused, EntryRefused)
    assert isinstance(back, ReplicationReport)
    assert back.entries == 1
