"""Applications write while links do: no row goes back, nothing is lost unrecorded, and the applications come
first."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from concord.jobs.site import Capture
from concord.messages.errors import WriteContended
from concord.versions.row_version import RowVersion
from spark_jobs.link import transmit
from tests.given import version_account
from tests.given.application_session import (
    Application,
    application_waits,
    application_wrote,
    link_waits,
    wait_until,
)
from tests.given.at_rest import control
from tests.given.at_step import At
from tests.given.fixtures import MakePair, over_captures
from tests.given.random_writers import Writer, repeating
from tests.given.site import APPLICATION, Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)",
    "INSERT INTO item SELECT n, 'common ' || n FROM generate_series(0, 19) n",
)
#: Of a race. By the log it has fewer forms: a link locks each row that it is about to write, from its first try on.
SECONDS = {Capture.TRIGGERS: 30, Capture.LOG: 15}
UNIQUE_VIOLATION = "23505"


def never_going_back(site: Site, connection: psycopg.Connection[Any]) -> Callable[[], None]:
    """Looks at every row and compares it with the last look; raises AssertionError."""
    seen: dict[int, RowVersion] = {}

    def look() -> None:
        for key, (now, exists) in version_account.shown(connection).items():
            before = seen.get(key, now)
            assert now == before or now.includes(before), f"{site.name} {key}: {before} -> {now}"
            # Where the log tells, the version follows its row with the next run.
            assert site.by_log or exists is not now.deleted, (
                f"{site.name} {key}: the version and the row disagree: {now}"
            )
            seen[key] = now

    return look


def run_links_for(sites: Pair, seconds: float) -> tuple[int, int]:
    """Both links again and again; how many runs completed, and how many gave way to applications."""
    completed = gave_way = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for direction in ("forward", "reverse"):
            try:
                sites.run(direction)
                completed += 1
            except WriteContended:
                gave_way += 1
    return completed, gave_way


@pytest.fixture
def raced(pair: MakePair, capture: Capture, request: pytest.FixtureRequest) -> tuple[Pair, list[Writer]]:
    """A pair after four writers ran against both links, and two more rounds in peace."""
    seed = str(request.config.getoption("hypothesis_seed"))
    print(f"seed of the writers: {seed}")  # noqa: T201 - to repeat a run
    sites = pair(*ITEM)
    version_account.install(sites)
    sites.london.run("UPDATE item SET token = 'warm' WHERE id = 0")
    sites.settle()  # Spark is warm now
    stop = threading.Event()
    writers = [Writer(site, f"{site.name} {number}", seed, stop) for site in sites.sites for number in (1, 2)]
    with (
        closing(sites.london.log_in("postgres")) as here,
        closing(sites.capetown.log_in("postgres")) as there,
    ):
        looks = [never_going_back(sites.london, here), never_going_back(sites.capetown, there)]
        with repeating(*looks, pause=0.05):
            for writer in writers:
                writer.start()
            completed, gave_way = run_links_for(sites, SECONDS[capture])
            stop.set()
            for writer in writers:
                writer.join()
    answers = {writer.name: (writer.committed, dict(writer.errors)) for writer in writers}
    print(f"{completed} runs completed, {gave_way} gave way; commits and errors: {answers}")  # noqa: T201
    assert completed > gave_way
    sites.settle()
    return sites, writers


@over_captures
@pytest.mark.timeout(180)
def test_a_race_loses_nothing_turns_nothing_back_and_ends_equal(raced: tuple[Pair, list[Writer]]) -> None:
    # I1, I2, I3, I4, I5, I12, F07, F27
    sites, writers = raced
    account = version_account.lines(sites)

    assert sites.equal
    assert all(writer.committed > 100 for writer in writers)
    assert {state for writer in writers for state in writer.errors} <= {UNIQUE_VIOLATION}
    assert any(line.by_link for line in account)
    assert list(version_account.steps_back(account)) == []
    assert list(version_account.gaps(account)) == []
    assert version_account.changed_contents(account) == {}
    assert version_account.unaccounted(account, sites) == []
    assert sites.conflicts()
    assert version_account.misrecorded(account, sites) == []
    assert version_account.needless(sites) == []
    identities = [conflict["id"] for conflict in sites.conflicts()]
    assert len(identities) == len(set(identities))

    before = [site.writes() for site in sites.sites]
    assert all(report.total("acquired") == 0 for report in (sites.run(), sites.run("reverse")))
    for site, then in zip(sites.sites, before, strict=True):
        assert {table for table, count in site.writes().items() if count != then[table]} <= control(
            site
        ).keys()


def test_an_application_that_inserts_the_key_that_the_link_inserts_is_never_the_deadlocks_victim(
    pair: MakePair,
) -> None:
    # The link holds the placeholder and waits for the row; the application holds the row and waits for the placeholder.
    sites = pair(*ITEM)
    sites.london.run(
        "INSERT INTO item VALUES (100, 'london')", "UPDATE item SET token = 'london' WHERE id = 1"
    )
    application = Application(sites.capetown, "INSERT INTO item VALUES (100, 'capetown')")
    # Only a try that locks has placeholders: the first one is in vain.
    in_vain = At("conflicts", lambda: sites.capetown.run("UPDATE item SET token = 'capetown' WHERE id = 1"))

    locked = At("base", lambda: application.start_until(application_waits), occurrence=2)

    def steps(step: str) -> None:
        in_vain(step)
        locked(step)

    report = transmit(sites.job(), sites.spark, steps)

    application.join()
    assert application.error is None
    assert locked.reached > 2, "the link gave way and began again"
    assert carried(report).conflicts == 2
    sites.settle()
    assert sites.equal
    assert sorted(c["loser_row"]["token"] for c in sites.conflicts()) == ["london", "london"]


def test_an_insert_that_is_faster_than_the_links_own_is_a_conflict(pair: MakePair) -> None:
    sites = pair(*ITEM)
    sites.london.run("INSERT INTO item VALUES (100, 'london')")
    faster = At("base", lambda: sites.capetown.run("INSERT INTO item VALUES (100, 'capetown')"))
    assert carried(sites.run(at=faster)).conflicts == 1
    assert faster.reached > 1, "the link began again"
    sites.settle()
    assert sites.equal
    assert [each["type"] for each in sites.conflicts()] == ["insert_insert"]


def test_an_application_that_meets_a_waiting_link_from_behind_is_never_the_deadlocks_victim(
    pair: MakePair,
) -> None:
    # The link waits first, and its own search for deadlocks is long over when the application closes the circle.
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london' WHERE id IN (1, 2)")
    application = Application(
        sites.capetown,
        "UPDATE item SET token = 'capetown' WHERE id = 2",
        lambda: wait_until(lambda: link_waits(sites.capetown)),
        lambda: time.sleep(0.1),
        "UPDATE item SET token = 'capetown' WHERE id = 1",
    )

    sites.run(at=At("lock", lambda: application.start_until(application_wrote)))

    application.join()
    assert application.error is None
    sites.settle()
    assert sites.equal
    assert len(sites.conflicts()) == 2


def test_a_row_that_is_edited_after_it_was_judged_is_judged_again(pair: MakePair) -> None:
    """The first try locks nothing that simply applies: the write of its version finds the edit (rule 3)."""
    sites = pair(*ITEM)
    sites.london.run(
        "UPDATE item SET token = 'london' WHERE id IN (1, 2)", "INSERT INTO item VALUES (100, 'london')"
    )
    late = At(
        "conflicts",
        lambda: sites.capetown.run(
            "UPDATE item SET token = 'capetown' WHERE id = 1", "INSERT INTO item VALUES (100, 'capetown')"
        ),
    )
    report = sites.run(at=late)
    assert late.reached == 2, "the link began again"
    assert carried(report).conflicts == 2
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT id, token FROM item WHERE id IN (1, 2, 100) ORDER BY id") == [
        (1, "capetown"),
        (2, "london"),
        (100, "capetown"),
    ]
    assert sorted(each["loser_row"]["token"] for each in sites.conflicts()) == ["london", "london"]


def test_a_version_of_which_another_link_learns_more_meanwhile_is_judged_again(pair: MakePair) -> None:
    """The site's knowledge of a row is part of the judgement of the row, though its version stays."""
    sites = pair(*ITEM)
    sites.capetown.run("UPDATE item SET token = 'capetown' WHERE id = 1")
    sites.settle()
    sites.london.run("UPDATE item SET token = 'london' WHERE id = 1")
    learnt = """UPDATE concord."public.item" SET vector = vector || '{"rome#1": [1, 0]}',
                position = pg_current_xact_id() WHERE id = 1"""
    learning = At("conflicts", lambda: sites.capetown.run(learnt))
    sites.run(at=learning)
    assert learning.reached == 2, "the link began again"
    sites.settle()
    assert sites.equal
    assert sites.capetown.value("""SELECT vector ? 'rome#1' FROM concord."public.item" WHERE id = 1""")


def test_a_conflict_whose_row_is_edited_while_the_link_waits_for_it_is_decided_by_the_new_row(
    pair: MakePair,
) -> None:
    """It was judged without a lock, as all rows are in the first try, and is looked at again once it is locked."""
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london' WHERE id = 1")
    time.sleep(0.002)
    sites.capetown.run("UPDATE item SET token = 'first' WHERE id = 1")
    application = Application(
        sites.capetown,
        "UPDATE item SET token = 'second' WHERE id = 1",
        lambda: wait_until(lambda: link_waits(sites.capetown)),
    )

    sites.run(at=At("judge", lambda: application.start_until(application_wrote)))
    application.join()
    assert application.error is None
    sites.settle()
    assert sites.equal
    assert sites.london.value("SELECT token FROM item WHERE id = 1") == "second"
    (conflict,) = sites.conflicts()
    assert (conflict["winner_row"]["token"], conflict["loser_row"]["token"]) == ("second", "london")
    stamp = sites.capetown.value("""SELECT changed_at FROM concord."public.item" WHERE id = 1""")
    assert conflict["winner_version"]["changed_at"] == stamp, "the version of the row that won"


def test_a_link_that_waits_for_a_row_does_not_hold_its_version_yet(pair: MakePair) -> None:
    """The holder of the row needs its version next, and would wait for the link that waits for him."""
    sites = pair(*ITEM)
    sites.capetown.run("UPDATE item SET token = 'capetown' WHERE id = 1")
    time.sleep(0.002)
    sites.london.run("UPDATE item SET token = 'london' WHERE id = 1")
    version = """SELECT FROM concord."public.item" WHERE id = 1 FOR UPDATE NOWAIT"""
    application = Application(
        sites.capetown,
        "SELECT FROM item WHERE id = 1 FOR UPDATE",
        lambda: wait_until(lambda: link_waits(sites.capetown)),
        lambda: sites.capetown.run(version),
    )
    judging = At("judge", lambda: application.start_until(application_wrote))

    assert carried(sites.run(at=judging)).conflicts == 1
    application.join()
    assert application.error is None
    assert judging.reached == 1, "the link has only waited"
    assert sites.capetown.value("SELECT token FROM item WHERE id = 1") == "london"


def test_a_key_without_a_row_is_locked_once_an_application_was_faster(pair: MakePair) -> None:
    """Only its tombstone can be locked (rule 3): else applications that are faster go on being faster."""
    sites = pair(*ITEM)
    sites.london.run("DELETE FROM item WHERE id = 2")
    sites.settle()
    sites.london.run("UPDATE item SET token = 'london' WHERE id = 1", "INSERT INTO item VALUES (2, 'london')")
    faster = At("conflicts", lambda: sites.capetown.run("UPDATE item SET token = 'capetown' WHERE id = 1"))

    def come_back() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sites.capetown.run("SET lock_timeout = '50ms'", "INSERT INTO item VALUES (2, 'capetown')")

    again = At("judge", come_back, occurrence=2)

    def progress(step: str) -> None:
        faster(step)
        again(step)

    transmit(sites.job(), sites.spark, progress)
    assert (faster.reached, again.reached) == (2, 2), "the link began again, once"
    assert sites.capetown.rows("SELECT id, token FROM item WHERE id < 3 ORDER BY id") == [
        *((0, "common 0"), (1, "capetown"), (2, "london"))
    ]


def test_nobody_alters_a_table_between_the_judgement_and_the_write(pair: MakePair) -> None:
    """F87"""
    sites = pair(*ITEM)
    sites.london.run("UPDATE item SET token = 'london' WHERE id = 1")

    def alter() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            sites.capetown.run("SET lock_timeout = '50ms'", "ALTER TABLE item ADD COLUMN more text")

    altering = At("judge", alter)
    sites.run(at=altering)
    assert altering.reached == 1
    assert sites.equal


def test_a_reader_of_the_target_never_sees_part_of_a_transaction(pair: MakePair) -> None:
    # I6: money moves between two tables; the sum is always the same
    sites = pair(
        "CREATE TABLE checking (id int PRIMARY KEY, amount int NOT NULL)",
        "CREATE TABLE saving (id int PRIMARY KEY, amount int NOT NULL)",
        "INSERT INTO checking SELECT n, 100 FROM generate_series(0, 9) n",
        "INSERT INTO saving SELECT n, 100 FROM generate_series(0, 9) n",
    )
    teller = sites.london.log_in(APPLICATION, autocommit=False)
    auditor = sites.capetown.log_in(APPLICATION, autocommit=False)
    auditor.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    sums: set[int] = set()
    states: set[int] = set()

    def transfer() -> None:
        with teller.transaction():
            teller.execute("UPDATE checking SET amount = amount - 7 WHERE id = %s", [random.randrange(10)])
            time.sleep(0.005)
            teller.execute("UPDATE saving SET amount = amount + 7 WHERE id = %s", [random.randrange(10)])

    def audit() -> None:
        with auditor.transaction():
            checking = _sum(auditor, "checking")
            time.sleep(0.002)
            sums.add(checking + _sum(auditor, "saving"))
            states.add(checking)

    with repeating(transfer, audit):
        for _ in range(8):
            sites.run()

    assert sums == {2000}
    assert len(states) > 4, "the auditor saw the money move"
    for connection in (teller, auditor):
        connection.close()


def _sum(connection: psycopg.Connection[Any], table: str) -> int:
    return sum(amount for (amount,) in connection.execute(f"SELECT amount FROM {table}".encode()))
