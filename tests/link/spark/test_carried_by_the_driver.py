"""Few rows are carried by the driver itself, and Spark is asked for nothing."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Event

import pytest
from pyspark.sql import SparkSession

from concord.databases import registry
from concord.databases.contract.reading import Part, Relayed
from concord.databases.postgresql.rows import stage
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.sites.link_source import LinkSource
from concord.databases.postgresql.write.relay import Relay
from concord.jobs.link import TransmissionReport
from concord.messages.errors import ConcordError, PrivilegeMissing, SiteUnavailable
from concord.transmission import route, straight
from spark_jobs.link import transmit
from tests.given.at_step import At
from tests.given.dialects import with_members
from tests.given.fixtures import MakePair
from tests.given.killed_driver import killed
from tests.given.site import READER
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

#: Rows from which Spark would carry them: more than any test has.
BY_THE_DRIVER = 1_000_000

LIBRARY = (
    "CREATE TABLE shelf (id int PRIMARY KEY, room numeric(6, 2))",
    "CREATE TABLE book (id int PRIMARY KEY, shelf int REFERENCES shelf, title text, cover bytea, added timestamptz)",
    "INSERT INTO shelf SELECT n, n FROM generate_series(1, 3) n",
    "INSERT INTO book SELECT n, 1, 'old ' || n, 'x', 'infinity' FROM generate_series(1, 9) n",
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*LIBRARY)


def refuse() -> SparkSession:
    raise AssertionError("Spark was started")


def by_the_driver(
    sites: Pair, direction: str = "forward", at: At | None = None, spark_from: int = BY_THE_DRIVER
) -> TransmissionReport:
    return transmit(sites.job(direction, spark_from=spark_from), refuse, at or (lambda step: None))


Stage = Callable[[Part, int], Relayed]


def relay_by(monkeypatch: pytest.MonkeyPatch, other: Callable[[Stage, Part, int], Relayed]) -> None:
    """Whatever relays a part is given to the other one, which may let it."""

    class Other(Relay):
        def __call__(self, part: Part, attempt: int) -> Relayed:
            return other(super().__call__, part, attempt)

    def between(source: LinkSource, target: Target) -> Relay:
        return Other((source.connection, target.at_hand()))

    replaced = with_members(registry.dialect("postgresql"), relay=Other, between=between)
    monkeypatch.setitem(registry.IMPORTED, "postgresql", replaced)


def settle(sites: Pair) -> None:
    for direction in ("forward", "reverse", "forward"):
        report = by_the_driver(sites, direction)
    assert report.total("acquired") == 0
    assert sites.equal
    assert sites.conflicts() == []


def test_rows_of_every_kind_arrive_though_spark_is_never_started(sites: Pair) -> None:
    sites.london.run(
        "INSERT INTO shelf VALUES (4, 1.5), (5, NULL)",
        "INSERT INTO book VALUES (10, 4, 'a ''quoted'' one', '\\x00ff', '2026-01-01 00:00:00.000001+02')",
        "UPDATE book SET title = NULL, cover = NULL WHERE id <= 3",
        "DELETE FROM book WHERE id = 9",
    )
    report = by_the_driver(sites)
    assert {each.table: (each.acquired, each.applied) for each in report.tables} == {
        "public.book": (5, 5),
        "public.shelf": (2, 2),
    }
    assert report.bytes > 0
    settle(sites)
    sites.capetown.run("UPDATE book SET title = 'back' WHERE id = 10", "DELETE FROM book WHERE id = 1")
    settle(sites)
    assert sites.london.rows("SELECT count(*), max(title) FILTER (WHERE id = 10) FROM book") == [(8, "back")]


def test_rows_that_meet_nothing_are_staged_as_what_they_are(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[Part] = []

    def noted(stage: Stage, part: Part, attempt: int) -> Relayed:
        parts.append(part)
        return stage(part, attempt)

    relay_by(monkeypatch, noted)
    sites.london.run("UPDATE book SET title = 'new' WHERE id = 1")
    by_the_driver(sites)
    (part,) = parts
    assert {"timestamptz", "jsonb"} <= {kind for _, kind in part.columns}
    assert sites.equal


def test_spark_is_started_from_so_many_rows_on(sites: Pair) -> None:
    sites.london.run("INSERT INTO shelf VALUES (4), (5)", "UPDATE book SET title = 'new' WHERE id = 1")
    asked: list[bool] = []

    def spark() -> SparkSession:
        asked.append(True)
        return sites.spark()

    report = transmit(sites.job(spark_from=3), spark, lambda step: None)
    assert (report.total("applied"), bool(asked)) == (3, True)
    assert sites.equal


@pytest.mark.parametrize(("most", "is_asked"), [(1, False), (0, True)])
def test_a_table_that_met_an_edit_is_judged_at_the_target_up_to_so_many_and_beyond_by_spark(
    sites: Pair, monkeypatch: pytest.MonkeyPatch, most: int, is_asked: bool
) -> None:
    monkeypatch.setattr(route, "MOST_UNDER_LOCK", most)
    sites.london.run("UPDATE shelf SET room = 7 WHERE id = 1", "UPDATE book SET title = 'new' WHERE id = 1")
    sites.capetown.run("UPDATE shelf SET room = 8 WHERE id = 1")
    asked: list[bool] = []

    def spark() -> SparkSession:
        asked.append(True)
        return sites.spark()

    report = transmit(sites.job(spark_from=BY_THE_DRIVER), spark)
    assert bool(asked) is is_asked
    assert (carried(report, "public.shelf").lost, carried(report, "public.book").applied) == (1, 1)
    sites.settle()
    assert sites.equal
    (conflict,) = sites.conflicts()
    assert conflict["table_name"] == "public.shelf"


def test_an_edit_at_the_target_that_comes_in_between_is_seen_under_lock_all_the_same(sites: Pair) -> None:
    # I9: nothing met the row when it was counted
    sites.london.run("UPDATE book SET title = 'london' WHERE id = 1")
    edit = At("write", lambda: sites.capetown.run("UPDATE book SET title = 'later' WHERE id = 1"))
    report = by_the_driver(sites, at=edit)
    assert edit.reached
    assert carried(report).lost == 1
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT title FROM book WHERE id = 1") == [("later",)]
    assert len(sites.conflicts()) == 1


def test_what_a_database_refuses_is_told_as_it_is_of_spark(sites: Pair) -> None:
    # F61
    sites.london.run("INSERT INTO shelf VALUES (4)", "UPDATE book SET title = 'new' WHERE id = 1")
    revoke = At("stage", lambda: sites.london.run(f"REVOKE SELECT ON book FROM {READER}"))
    with pytest.raises(
        PrivilegeMissing,
        match=r"^public\.book: permission denied for table book. Run `provision`.*Nothing was",
    ):
        by_the_driver(sites, at=revoke)
    assert sites.capetown.rows("SELECT count(*) FROM shelf") == [(3,)], "nothing of any table was written"
    sites.london.run(f"GRANT SELECT ON book TO {READER}")
    settle(sites)


def test_after_a_failure_no_other_part_is_begun_and_no_session_is_left_at_the_source(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S0-45: the target refuses the rows when the source sends them already
    names = [f"shelf_{number}" for number in range(9)]
    sites = pair(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in names))
    sites.london.run(*(f"INSERT INTO {name} SELECT generate_series(1, 9999)" for name in names))
    begun: list[str] = []
    another_begun, refused = Event(), Event()

    def first_refused(relay: Stage, part: Part, attempt: int) -> Relayed:
        begun.append(part.table)
        if begun[0] == part.table:
            assert another_begun.wait(20)
            try:
                return relay(replace(part, relation="nowhere"), attempt)
            except ConcordError:
                raise SiteUnavailable(
                    "capetown is away"
                ) from None  # another error would stop the table alone
            finally:
                refused.set()
        another_begun.set()
        assert refused.wait(20)
        time.sleep(0.5)  # until the driver has heard of it
        return relay(part, attempt)

    with monkeypatch.context() as patched:
        relay_by(patched, first_refused)
        with pytest.raises(SiteUnavailable, match=r"^public\.shelf_[01]: capetown is away") as failure:
            by_the_driver(sites)
    assert len(begun) == 2, "readers"
    reading = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'concord%' AND state <> 'idle'"
    )
    assert sites.london.rows(f"{reading} AND datname = current_database()") == [(0,)], failure
    assert by_the_driver(sites).total("applied") == 9999 * len(names)


@pytest.mark.parametrize(("step", "occurrence"), [("stage", 1), ("stage", 3), ("write", 1), ("commit", 1)])
def test_a_run_killed_where_the_driver_carries_can_be_repeated(
    sites: Pair, step: str, occurrence: int
) -> None:
    # F57: what the killed run had staged is never read
    sites.london.run("INSERT INTO shelf VALUES (4)", "UPDATE book SET shelf = 4 WHERE id = 1")
    killed(sites, partial(transmit, sites.job(spark_from=BY_THE_DRIVER), refuse), step, occurrence)
    assert sites.capetown.rows("SELECT shelf FROM book WHERE id = 1") == [(1,)]
    settle(sites)
    assert sites.capetown.rows("SELECT shelf FROM book WHERE id = 1") == [(4,)]


def test_a_run_killed_between_two_parts_can_be_repeated(sites: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    # F57: the first part's rows are committed in staging, and nobody will ever believe them
    monkeypatch.setattr(straight, "THREADS", 1)
    sites.london.run("INSERT INTO shelf VALUES (4)", "UPDATE book SET shelf = 4 WHERE id = 1")
    ended: list[int] = []

    def kill_before_the_second(relay: Stage, part: Part, attempt: int) -> Relayed:
        if ended:
            os.kill(os.getpid(), signal.SIGKILL)
        ended.append(attempt)
        return relay(part, attempt)

    with monkeypatch.context() as patched:
        relay_by(patched, kill_before_the_second)
        killed(sites, partial(transmit, sites.job(spark_from=BY_THE_DRIVER), refuse), "write")
    left = stage.orphans(sites.capetown.connection, [])
    counts = [sites.capetown.rows(f'SELECT count(*) FROM concord_staging."{name}"') for name in left]
    assert sorted(counts) == [[(0,)], [(1,)]]
    settle(sites)
    assert sites.capetown.rows("SELECT shelf FROM book WHERE id = 1") == [(4,)]
