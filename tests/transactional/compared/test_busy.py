"""Comparisons while users write and runs replay: no row that is under way is taken for a difference (T17)."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import sleep

import psycopg
import pytest

from concord.databases.postgresql.replication import publisher
from concord.databases.postgresql.replication.subscriber import Subscriber
from concord.jobs.link import Direction
from concord.messages.errors import WriteContended
from tests.given.compared_replication import Reached, compare, table
from tests.given.replicated_accounts import Make, accounts
from tests.given.site import Site
from tests.given.staying_run import staying

ROWS = 40
#: A transaction that begins so is taken for a replayed one, and travels nowhere.
AS_REPLAYED = "SET LOCAL session_replication_role = replica; UPDATE concord.replay SET level = level"


def write(site: Site, seed: int, keys: range, ended: threading.Event) -> None:
    """A user who changes, deletes and inserts these accounts, and whose keys move."""
    chance = random.Random(seed)
    with site.log_in(site.superuser) as connection:
        while not ended.wait(0.01):
            key, other, value = chance.choice(keys), chance.choice(keys), chance.randrange(10**9)
            statement = chance.choice(
                [
                    f"UPDATE account SET balance = {value} WHERE id IN ({key}, {other})",
                    f"DELETE FROM account WHERE id = {key}",
                    f"INSERT INTO account VALUES ({key}, 'owner', {value})",
                    f"UPDATE account SET id = {other} WHERE id = {key}",
                ]
            )
            with suppress(psycopg.errors.UniqueViolation):
                connection.execute(statement)


@contextmanager
def users(*of: tuple[Site, range]) -> Iterator[None]:
    ended = threading.Event()
    threads = [
        threading.Thread(target=write, args=(site, seed, keys, ended)) for seed, (site, keys) in enumerate(of)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def looks(reached: Reached) -> None:
    """A run is on elsewhere."""
    while not reached():
        sleep(0.02)


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_a_replication_that_never_rests_is_compared_while_users_write(replicated: Make, capture: str) -> None:
    """S2-30: two users, one run that stays; the row that was altered by hand is found each time, and no other."""
    sites = accounts(replicated, capture=capture)
    sites.london.run("INSERT INTO account VALUES (1000, 'still', 1)")
    sites.run()
    sites.capetown.run("UPDATE account SET balance = 7 WHERE id = 1000")
    met = 0
    two = users((sites.london, range(1, ROWS)), (sites.london, range(1, ROWS)))
    with staying(sites, run_for=120, linger=120) as (run, _), two:
        for _ in range(5):
            report = compare(sites, catch_up=looks)
            assert [each.key for each in report.differences] == [("1000",)]
            met += table(report).in_flight
    run.result()
    assert met > 0, "no comparison met a row that was under way"
    found = table(compare(sites))
    assert (found.differing, found.in_flight) == (1, 0)


def test_a_run_that_goes_on_while_a_comparison_begins_has_lost_no_history(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run confirms the log beyond the level that the comparison has read a moment ago."""
    sites, read = accounts(replicated), Subscriber.reached
    levels: list[int] = []

    def before_a_run(end: Subscriber) -> int:
        level = read(end)
        levels.append(level)
        if len(levels) == 1:
            sites.london.run("UPDATE account SET balance = 1 WHERE id = 1")
            sites.run()
        return level

    monkeypatch.setattr(Subscriber, "reached", before_a_run)
    assert compare(sites).found == 0
    assert levels[-1] > levels[0]


@pytest.mark.parametrize("updates", ["both", "queued"])
def test_two_sites_that_both_write_are_compared_while_they_do(replicated: Make, updates: str) -> None:
    """S2-07, S3-01: each user has keys of his own; runs of both directions come between."""
    sites = replicated(
        ("CREATE TABLE account (id int PRIMARY KEY, owner text, balance numeric)",),
        "public.account",
        updates=updates,
    )
    sites.london.run("INSERT INTO account SELECT n, 'owner ' || n, 100 FROM generate_series(1, 100) n")
    sites.initialize_both_ways()
    sites.capetown.run(f"{AS_REPLAYED}; UPDATE account SET balance = 7 WHERE id = 50")
    ended = threading.Event()

    def replay() -> None:
        while not ended.is_set():
            sites.run()
            sites.run(direction=Direction.REVERSE)

    runs = threading.Thread(target=replay)
    runs.start()
    try:
        with users((sites.london, range(1, 40)), (sites.capetown, range(60, 100))):
            for _ in range(4):
                assert [each.key for each in compare(sites, catch_up=looks).differences] == [("50",)]
    finally:
        ended.set()
        runs.join()
    found = table(compare(sites))
    assert (found.differing, found.differences, found.in_flight) == (1, 1, 0)


def test_a_transaction_that_stays_open_ends_the_comparison_in_words(
    replicated: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No log begins beside it; nothing is left of the one that was to begin."""
    monkeypatch.setattr(publisher, "OPEN", 1.0)
    sites = accounts(replicated)
    with sites.london.log_in(sites.london.superuser, autocommit=False) as user:
        # whoever waits for it longer than that waits no more, and the test ends
        user.execute("SET idle_in_transaction_session_timeout = '60s'")
        user.execute("UPDATE account SET balance = 5 WHERE id = 1")
        with pytest.raises(WriteContended, match="london: a transaction has been open for more than 1 s"):
            compare(sites)
        slots = "pg_replication_slots WHERE temporary AND database = current_database()"
        assert sites.london.value(f"SELECT count(*) FROM {slots}") == 0
    assert compare(sites).found == 0
