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
#: Of a race; `make test` takes the second number. By the log it has fewer forms: a link locks each row that it is
#: about to write, from its first try on.
SECONDS = {Capture.TRIGGERS: (30, 8), Capture.LOG: (15, 6)}
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
    seed, quick = str(request.config.getoption("hypothesis_seed")), request.config.getoption("quick")
    seconds = SECONDS[capture][quick is not None]
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
            completed, gave_way = run_links_for(sites, seconds)
            stop.set()
            for writer in writers:
                writer.join()
    answers = {writer.name: (writer.committed, dict(writer.errors)) for writer in writers}
    print(f"{completed} runs completed, {gave_way} gave way; commits and errors: {answers}")  # noqa: T201
    assert completed > gave_way
    assert all(writer.committed > 7 * seconds for writer in writers)
    sites.settle()
    return sites, writers


@over_captures
@pytest.mark.timeout(180)
def test_a_race_loses_nothing_turns_nothing_back_and_ends_equal(raced: tuple[Pair, list[Writer]]) -> None:
    # I1, I2, I3, I4, I5, I12, F07, F27
    sites, writers = raced
    account = version_account.lines(sites)

    assert sites.equal
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
