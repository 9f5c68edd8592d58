"""The driver or Spark: which of them carries how many rows, and what happens when one part of a carry fails."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from threading import Barrier, Event, Lock
from types import TracebackType
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concord.databases.contract.reading import (
    ROWS_PER_READER,
    TABLES_PER_READER,
    Part,
    Reading,
    Relayed,
    readers_for,
)
from concord.messages.errors import ConcordError, LinkFailed, PrivilegeMissing, SiteUnavailable
from concord.rules.brake import Brakes, Limit
from concord.rules.policy import Policy
from concord.tables.manipulation import NOTHING, Manipulation, Rename
from concord.transmission import route, straight
from concord.transmission.errors import STAGING, TaskFailed
from concord.transmission.route import goes_straight
from concord.transmission.straight import needs_spark, stage_by_the_driver
from concord.values.interval import Interval
from tests.given.link_in_memory import MemoryPair, MemoryShape, memory_pair, replicated

SHELF, BOOK = "public.shelf", "public.book"
RENAMED = Manipulation(operations=(Rename(canonical=("content",), own=("inhalt",)),))
ASKS, SHOWS_COMMON = (Policy(resolvers=(f"custom(os:getcwd{option})",)) for option in ("", ", common"))


@pytest.fixture
def pair() -> MemoryPair:
    """Two edits of shelves and one of a book."""
    pair = memory_pair(replicated("shelf"), replicated("book"))
    pair.london.edit(SHELF, 1, "new")
    pair.london.edit(SHELF, 2, "new")
    pair.london.edit(BOOK, 1, "new")
    return pair


# By number of rows


@pytest.mark.parametrize(
    ("rows", "spark_from", "spark"),
    [(999, 1_000, False), (1_000, 1_000, True), (0, 1, False), (0, 0, True), (None, 1_000_000, True)],
)
def test_spark_carries_from_its_number_of_rows_on_and_what_nobody_has_counted(
    rows: int | None, spark_from: int, spark: bool
) -> None:
    assert needs_spark(rows, spark_from) is spark


@pytest.mark.parametrize(("spark_from", "carried"), [(4, []), (3, [SHELF, BOOK]), (0, [SHELF, BOOK])])
def test_the_rows_of_all_tables_together_decide_who_carries(
    pair: MemoryPair, spark_from: int, carried: list[str]
) -> None:
    assert pair.run(spark_from=spark_from).total("applied") == 3
    assert (pair.spark.carried, pair.spark.started) == (carried, int(bool(carried)))
    assert ("start_spark" in pair.steps) is bool(carried)


def test_spark_is_not_started_where_nothing_changed_even_if_it_carries_every_row(pair: MemoryPair) -> None:
    pair.settle()
    pair.run(spark_from=0)
    assert (pair.spark.started, pair.spark.carried) == (0, [])


def test_a_table_that_spark_judges_does_not_count_for_those_that_go_straight(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "MOST_UNDER_LOCK", 0)
    pair.capetown.edit(SHELF, 3, "theirs")
    pair.run(spark_from=2)
    assert (pair.spark.judged, pair.spark.carried) == ([SHELF], [])


# By what is to be decided


@pytest.mark.parametrize(("most", "by_spark"), [(1, []), (0, [SHELF])])
def test_spark_judges_a_table_that_meets_more_versions_than_may_be_judged_under_lock(
    pair: MemoryPair, monkeypatch: pytest.MonkeyPatch, most: int, by_spark: list[str]
) -> None:
    monkeypatch.setattr(route, "MOST_UNDER_LOCK", most)
    pair.capetown.edit(SHELF, 3, "theirs")
    assert pair.run().total("applied") == 3
    assert pair.spark.judged == by_spark


@pytest.mark.parametrize(("candidates", "straight"), [(10_000, True), (10_001, False)])
def test_the_most_versions_that_may_be_judged_under_lock(
    pair: MemoryPair, candidates: int, straight: bool
) -> None:
    shape = MemoryShape(SHELF, "london")
    assert goes_straight(pair.job(), shape, shape, candidates) is straight


@pytest.mark.parametrize("mapped", ["source", "target"])
def test_a_table_that_either_site_maps_is_spark_s(pair: MemoryPair, mapped: str) -> None:
    shapes = [
        MemoryShape(SHELF, end, manipulation=RENAMED if mapped == end else NOTHING)
        for end in ("source", "target")
    ]
    assert not goes_straight(pair.job(), *shapes, 0)


def test_a_table_between_databases_of_two_kinds_is_spark_s(pair: MemoryPair) -> None:
    job, shape = pair.job(), MemoryShape(SHELF, "london")
    other = job.model_copy(update={"target": job.target.model_copy(update={"dialect": "mariadb"})})
    assert not goes_straight(other, shape, shape, 0)


def test_a_plan_is_spark_s(pair: MemoryPair) -> None:
    pair.run(plan_only=True)
    assert (pair.spark.judged, pair.spark.carried) == ([SHELF, BOOK], [])


@pytest.mark.parametrize(
    ("policy", "backfill", "candidates", "straight"),
    [
        (ASKS, False, 1, True),
        (ASKS, True, 1, False),
        (SHOWS_COMMON, True, 1, True),
        (SHOWS_COMMON, True, 10_001, True),
        (ASKS, False, 10_001, False),
        (Policy(), True, 1, True),
    ],
)
def test_a_function_is_asked_by_spark_in_a_backfill_unless_it_is_shown_the_common_version(
    pair: MemoryPair, policy: Policy, backfill: bool, candidates: int, straight: bool
) -> None:
    job = pair.job(interval=Interval(start=0, end=1) if backfill else None)
    source, target = (MemoryShape(SHELF, name, policy) for name in ("london", "capetown"))
    assert goes_straight(job, source, target, candidates) is straight


@pytest.mark.parametrize(("rows", "weighed"), [(1, False), (2, True)])
def test_removals_are_counted_only_where_a_brake_could_hold(rows: int, weighed: bool) -> None:
    pair = memory_pair(replicated("shelf", brakes=Brakes(deletes=Limit(rows=1))))
    for key in range(rows):
        pair.london.edit(SHELF, key + 1, "new")
    parts: list[Part] = []
    pair.prepare = lambda dialect, _: setattr(dialect, "before_part", parts.append)
    pair.run()
    assert [part.weighed for part in parts] == [weighed]


# By how many readers


@pytest.mark.parametrize(
    ("rows", "tables", "readers"),
    [
        (ROWS_PER_READER - 1, 1, 1),
        (ROWS_PER_READER, 1, 2),
        (1, TABLES_PER_READER - 1, 1),
        (1, TABLES_PER_READER, 2),
        (ROWS_PER_READER * 9, 1, 5),
    ],
)
def test_another_reader_is_opened_for_so_many_rows_or_tables_and_no_more_than_the_site_allows(
    rows: int, tables: int, readers: int
) -> None:
    assert readers_for(rows, 5, tables) == readers


@pytest.mark.parametrize(("tables", "readers", "relays"), [(3, 2, 1), (4, 2, 2), (5, 2, 2), (4, 1, 1)])
def test_the_driver_opens_a_second_connection_for_many_tables_if_the_site_allows_it(
    tables: int, readers: int, relays: int
) -> None:
    """S0-45."""
    pair = memory_pair(*(replicated(f"t{number}") for number in range(tables)))
    for table in pair.tables:
        pair.london.edit(table.name, 1, "new")
    source = pair.job().source.model_copy(update={"readers": readers})
    assert pair.run(source=source).total("applied") == tables
    assert (len(pair.dialect.relays), pair.dialect.borrowed) == (relays, 1)


# The driver's threads


@dataclass
class Way:
    """A table of so many parts."""

    table: str
    count: int

    def parts(self, login: str) -> list[Part]:
        reading = Reading("", (), (), "")
        return [
            Part(self.table, reading, f"{self.table} {n}", login, self.table, ()) for n in range(self.count)
        ]


Stage = Callable[[Part, int], Relayed]


def stage_one_row(part: Part, attempt: int) -> Relayed:
    return Relayed(attempt, 1, 0, 10)


@dataclass
class Relay:
    """Stages with a function, and remembers what it was given."""

    stage: Stage = stage_one_row
    staged: list[tuple[str, int]] = field(default_factory=list)
    ended: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended = True

    def __call__(self, part: Part, attempt: int) -> Relayed:
        relayed = self.stage(part, attempt)
        self.staged.append((part.query, attempt))
        return relayed


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(1, 6))
def test_every_part_is_staged_once_under_a_number_of_its_own_whatever_carries_it(
    parts: list[int], readers: int
) -> None:
    ways = [Way(f"t{number}", count) for number, count in enumerate(parts)]
    relays = [Relay() for _ in range(readers + 1)]
    tables = stage_by_the_driver(iter(relays), ways, "login", readers)
    staged = [each for relay in relays for each in relay.staged]
    assert sorted(query for query, _ in staged) == sorted(
        part.query for way in ways for part in way.parts("")
    )
    assert sorted(attempt for _, attempt in staged) == list(range(sum(parts)))
    assert [(each.rows, each.bytes, len(each.attempts)) for each in tables] == [
        (count, 10 * count, count) for count in parts
    ]
    assert all(relay.ended or not relay.staged for relay in relays), "a connection is left open"


@pytest.mark.parametrize(
    ("parts", "readers", "threads"), [(9, 2, 2), (9, 9, straight.THREADS), (3, 9, 3), (9, 1, 1)]
)
def test_as_many_threads_as_readers_parts_and_the_driver_allow(
    parts: int, readers: int, threads: int
) -> None:
    together = Barrier(threads, timeout=10)
    waited: set[int] = set()
    lock = Lock()

    def wait_for_the_others(part: Part, attempt: int) -> Relayed:
        with lock:
            waits = len(waited) < threads
            waited.add(attempt)
        if waits:
            together.wait()
        return stage_one_row(part, attempt)

    relays = [Relay(wait_for_the_others) for _ in range(10)]
    stage_by_the_driver(iter(relays), [Way("t", parts)], "login", readers)
    assert sum(bool(relay.staged) for relay in relays) == threads
    assert sum(relay.ended for relay in relays) == threads


def failing(error: BaseException, query: str) -> Stage:
    def stage(part: Part, attempt: int) -> Relayed:
        if part.query == query:
            raise error
        return stage_one_row(part, attempt)

    return stage


def test_no_other_part_begins_after_one_has_failed() -> None:
    relay = Relay(failing(SiteUnavailable("away"), "t 1"))
    with pytest.raises(TaskFailed):
        stage_by_the_driver(repeat(relay), [Way("t", 9)], "login", 1)
    assert relay.staged == [("t 0", 0)]
    assert relay.ended


def test_a_part_under_way_ends_and_no_thread_begins_another_when_one_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, noticed = Event(), Event()
    monkeypatch.setattr(straight, "Event", lambda: noticed)

    def slow_or_failing(part: Part, attempt: int) -> Relayed:
        if part.query == "t 1":
            assert begun.wait(10)
            raise SiteUnavailable("away")
        begun.set()
        assert noticed.wait(10)
        return stage_one_row(part, attempt)

    relays = [Relay(slow_or_failing), Relay(slow_or_failing)]
    with pytest.raises(TaskFailed, match=r"SiteUnavailable: away\nwhile staging t"):
        stage_by_the_driver(iter(relays), [Way("t", 9)], "login", 2)
    assert sum(len(relay.staged) for relay in relays) == 1
    assert all(relay.ended for relay in relays)


def test_a_failure_names_its_table_in_one_line() -> None:
    relay = Relay(failing(SiteUnavailable("away"), "a\nb 0"))
    with pytest.raises(TaskFailed, match=f"{STAGING}a b\n?$"):
        stage_by_the_driver(repeat(relay), [Way("a\nb", 1)], "login", 1)


class Signal(BaseException):
    """As a signal's handler raises it."""


@pytest.mark.parametrize("error", [Signal(), AssertionError("a defect")])
def test_what_no_relay_raises_is_passed_on_as_it_is(error: BaseException) -> None:
    relay = Relay(failing(error, "t 0"))
    with pytest.raises(type(error)) as raised:
        stage_by_the_driver(repeat(relay), [Way("t", 1)], "login", 1)
    assert raised.value is error
    assert relay.ended


@pytest.mark.parametrize("readers", [1, 3])
def test_nothing_is_written_when_one_table_s_rows_cannot_be_staged(pair: MemoryPair, readers: int) -> None:
    def fail_for_books(part: Part) -> None:
        if part.table == BOOK:
            raise PrivilegeMissing("permission denied for table book")

    pair.prepare = lambda dialect, _: setattr(dialect, "before_part", fail_for_books)
    before = pair.positions()
    with pytest.raises(PrivilegeMissing, match=r"^public\.book: permission denied .* Nothing was written$"):
        pair.run(source=pair.job().source.model_copy(update={"readers": readers}))
    assert pair.positions() == before
    assert pair.capetown.tables[SHELF].written == 0
    assert pair.capetown.staging == {}


@pytest.mark.parametrize("spark_from", [0, 1_000])
def test_a_table_whose_rows_cannot_be_moved_stops_and_the_others_are_written(
    pair: MemoryPair, spark_from: int
) -> None:
    def fail_for_books(part: Part) -> None:
        if part.table == BOOK:
            raise LinkFailed("of our own making")

    pair.prepare = lambda dialect, _: setattr(dialect, "before_part", fail_for_books)
    report = pair.run(spark_from=spark_from)
    stopped = {each.table: each.stopped for each in report.tables if each.stopped}
    assert stopped == {BOOK: f"{BOOK}: of our own making. Nothing was written"}
    assert pair.capetown.tables[SHELF].written > 0


@pytest.mark.parametrize("spark_from", [0, 1_000])
def test_a_failure_has_the_same_class_and_words_whoever_carries(pair: MemoryPair, spark_from: int) -> None:
    def fail(part: Part) -> None:
        raise LinkFailed("of our own making")

    pair.prepare = lambda dialect, _: setattr(dialect, "before_part", fail)
    with pytest.raises(LinkFailed, match=r"^public\.\w+: of our own making\. Nothing was written$"):
        pair.run(spark_from=spark_from)


def relays_that_fail(number: int, error: ConcordError) -> Iterator[Relay]:
    """The one of that number cannot be opened."""
    for count in range(10):
        if count == number:
            raise error
        yield Relay()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_connection_that_cannot_be_opened_ends_the_carry(number: int) -> None:
    with pytest.raises(SiteUnavailable, match="too many connections"):
        stage_by_the_driver(
            relays_that_fail(number, SiteUnavailable("too many connections")), [Way("t", 9)], "login", 3
        )
