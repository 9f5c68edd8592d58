"""Both directions of a queued replication stay side by side, and follow one another (S2-30, S4-143)."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta

import psycopg
import pytest

from concord.databases.postgresql.queued import delivered
from concord.jobs.replication_report import ReplicationReport
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.hub_histories import settled
from tests.given.queued_preferences import VERSIONS, are_alike, hub, preference, preferences, settle
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

PEOPLE = 6


def write(site: Site, seed: int, ended: threading.Event) -> None:
    """A user of one site, who changes, deletes and inserts the rows that all the others write as well."""
    chance = random.Random(seed)
    with site.log_in(site.superuser) as connection:
        while not ended.wait(0.02):
            person, other, value = (
                chance.randint(1, PEOPLE),
                chance.randint(1, PEOPLE),
                chance.randrange(10**9),
            )
            statement = chance.choice(
                [
                    f"UPDATE preference SET size = {value} WHERE person IN ({person}, {other})",
                    f"DELETE FROM preference WHERE person = {person}",
                    f"INSERT INTO preference VALUES ({person}, '{value}')",
                    f"UPDATE preference SET colour = 'plain' WHERE person = {person}",
                ]
            )
            with suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                connection.execute(statement)


@contextmanager
def users(*sites: Site) -> Iterator[None]:
    ended = threading.Event()
    writing = [threading.Thread(target=write, args=(site, seed, ended)) for seed, site in enumerate(sites)]
    for each in writing:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in writing:
            each.join()


def stay(sites: Replicated, runs: int, seconds: float = 1.0) -> list[ReplicationReport]:
    """So many runs of so many seconds, one after the other; none of them stops."""
    reports = list[ReplicationReport]()
    for _ in range(runs):
        for outcome in sites.stay_both(run_for=seconds):
            assert isinstance(outcome, ReplicationReport), outcome
            reports.append(outcome)
    return reports


def stay_until(sites: Replicated, done: Callable[[], bool]) -> None:
    """Short runs, one after the other, until it is so."""
    for _ in range(20):
        stay(sites, runs=1, seconds=0.2)
        if done():
            return
    raise AssertionError("no run does it")


def lost(site: Site) -> int:
    return int(str(site.value("SELECT count(*) FROM concord.conflict")))


@pytest.mark.parametrize("scope", ["transaction", "row"])
@pytest.mark.parametrize("policy", ["publisher_wins", "subscriber_wins"])
def test_sites_whose_users_write_the_same_rows_end_equal_and_losers_are_logged(
    replicated: Make, policy: str, scope: str
) -> None:
    """S3-19, S3-20: each direction decides while the other one writes."""
    sites = preferences(replicated, policy=policy, scope=scope)
    with users(*sites.sites, *sites.sites):
        reports = stay(sites, runs=2)
    settle(sites)
    assert sum(each.entries for each in reports) > 20
    assert lost(sites.london) > 0
    assert are_alike(sites)


def test_a_hub_and_two_spokes_that_all_stay_end_equal(
    replicated: Make, server_with_logins: Server, database: Callable[[], Database]
) -> None:
    """S2-26, S4-143: four directions at once, over the same rows."""
    with hub(replicated, server_with_logins, database) as spokes:
        one, other = spokes
        with ThreadPoolExecutor(2) as pool, users(one.london, one.capetown, other.capetown):
            staying = [pool.submit(stay, each, runs=2) for each in (one, other)]
            assert all(run.result() for run in staying)
        settled(spokes)
        assert all(map(are_alike, spokes))
        assert lost(one.london) > 0


def test_a_run_that_stays_deletes_what_was_delivered(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S4-156: `log_purge` finds no moment between two such runs."""
    sites = preferences(replicated)
    sites.london.run(
        "UPDATE preference SET size = 50 WHERE person = 5", "DELETE FROM preference WHERE person = 6"
    )
    sites.capetown.run("UPDATE preference SET size = 51 WHERE person = 5")
    equal, kept = ([("colour 5", 50)],) * 2, "SELECT count(*) FROM concord.compensation"
    stay_until(sites, lambda: preference(sites, 5) == equal and sites.london.value(kept) == 0)
    assert any(row[4] for row in sites.london.rows(VERSIONS)), "younger ones stay"
    monkeypatch.setattr(delivered, "TOMBSTONES_KEPT", timedelta(0))
    stay_until(sites, lambda: not any(row[4] for site in sites.sites for row in site.rows(VERSIONS)))
    assert are_alike(sites)
