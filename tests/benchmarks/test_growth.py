"""The benchmark of growth: the rows it edits, keeps in memory and prints."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rich.console import Console

from benchmarks import databases
from benchmarks.bookings import creation
from benchmarks.connected_run import server
from benchmarks.growth import BY_INDEX, Times, compare, grid, reading
from benchmarks.growth_plan import OFTEN, Plan
from demo.progress import Progress
from tests.conftest import Database

COUNT = "SELECT count(*) FROM public.bookings"

PLAN = Plan(small=2_000, large=8_000, changes=(10, 1_100), repeat=2, few=10)


@pytest.fixture
def bookings(database: Callable[[], Database]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database().uri, autocommit=True) as connection:
        for statement in creation(PLAN.large):
            connection.execute(statement.encode())
        yield connection


def test_the_same_edits_are_made_in_all_rows_of_the_small_table_and_in_the_newest_and_all_of_large_ones() -> (
    None
):
    parts = [(each.rows, each.first, each.size) for each in PLAN.parts]
    assert parts == [(2_000, 1, 2_000), (8_000, 6_001, 2_000), (8_000, 1, 8_000)]
    made = [[(each.count, each.before) for each in PLAN.edits(part, 0)] for part in PLAN.parts]
    touched = [9, *[9] * OFTEN]  # of 10 changes one is an insert; the first are those that nobody measures
    assert made == [[(10, sum(touched[:n])) for n in range(1 + OFTEN)] + [(1_100, 9 * (1 + OFTEN))]] * 3


def test_every_part_has_a_table_of_its_own() -> None:
    assert len({part.table for part in PLAN.parts}) == len(PLAN.parts)


def test_each_part_comes_first_in_turn_and_each_is_measured_in_every_round() -> None:
    plan = replace(PLAN, small=3_000, repeat=4)  # the second sitting has the warm-up, and two rounds more
    orders = [[part.table for part, _ in each] for each in plan.rounds(sitting=1)]
    assert orders[:3] == [
        ["newest", "large", "small"],
        ["large", "small", "newest"],
        ["small", "newest", "large"],
    ]
    for each in PLAN.rounds(sitting=0):
        assert len({edits.count for _, edits in each}) == 1
        assert all((edits.rows, edits.first, edits.part) == (p.rows, p.first, p.size) for p, edits in each)


def test_indexes_are_read_alone_and_the_newest_rows_by_theirs(bookings: psycopg.Connection[Any]) -> None:
    """Else a large table would pass through a corner of the memory, and leave nothing there."""
    _, newest, _ = PLAN.parts
    statements = reading(newest)
    assert statements[: len(BY_INDEX)] == BY_INDEX
    for statement in BY_INDEX:
        bookings.execute(statement.encode())
    plans = [_plan(bookings, each) for each in statements[len(BY_INDEX) :]]
    assert "Index Only Scan using bookings_pkey" in plans[0]
    assert "Index Only Scan using bookings_flight" in plans[1]
    assert "Index Scan using bookings_pkey" in plans[2]
    found = [bookings.execute(each.encode()).fetchall() for each in statements[len(BY_INDEX) :]]
    assert found == [[(8_000,)], [(8_000,)], [(2_000,)]]


def _plan(bookings: psycopg.Connection[Any], statement: str) -> str:
    return "\n".join(line for (line,) in bookings.execute(f"EXPLAIN {statement}".encode()))


def test_few_changes_are_measured_more_often() -> None:
    assert sorted(count for each in PLAN.sittings for count in each) == [*[10] * OFTEN, *[1_100] * 2]
    many = replace(PLAN, few=1_100)
    assert sorted(count for each in many.sittings for count in each) == [*[10] * OFTEN, *[1_100] * OFTEN]


def test_no_row_is_edited_twice_since_new_tables_are_made_before_none_is_left() -> None:
    assert PLAN.sittings == [[*[10] * OFTEN, 1_100], [1_100]]
    for sitting in range(len(PLAN.sittings)):
        edits = list(PLAN.edits(PLAN.parts[0], sitting))
        assert all(one.before + one.touched == other.before for one, other in pairwise(edits))
        assert edits[-1].before + edits[-1].touched <= PLAN.small


def test_link_and_script_come_first_in_turn_also_where_each_round_has_tables_of_its_own() -> None:
    alone = replace(PLAN, small=1_000)
    assert alone.sittings == [[10] * OFTEN, [1_100], [1_100]]
    orders = [[PLAN.link_first(sitting, each) for each in range(2)] for sitting in (1, 2)]
    assert orders == [[False, True], [True, False]]


def test_a_plan_is_too_large_whose_table_has_not_the_rows_of_one_round() -> None:
    touched = 9 + 990  # of the warm-up, and of 1,100 changes
    assert not Plan(touched, 8_000, PLAN.changes, repeat=9).too_large
    assert Plan(touched - 1, 8_000, PLAN.changes, repeat=1).too_large
    assert Plan(touched, touched - 1, PLAN.changes, repeat=1).too_large


def test_a_line_compares_a_link_and_a_script_by_hand_with_those_in_the_small_table_of_the_same_round() -> (
    None
):
    small, newest, every = PLAN.parts
    one = {small: Times(1.0, 2.0), newest: Times(1.5, 2.0), every: Times(3.0, 8.0)}
    two = {small: Times(2.0, 2.0), newest: Times(2.0, 3.0), every: Times(3.0, 8.0)}
    found = grid(PLAN, {10: [one, two]}).rows
    assert [row[:3] for row in found] == [["10", part.name, "2"] for part in PLAN.parts]
    assert [row[3:] for row in found] == [
        ["1.50 (1.00 to 2.00)", "1.00", "2.00", "1.00"],
        ["1.75 (1.50 to 2.00)", "1.25 (1.00 to 1.50)", "2.50 (2.00 to 3.00)", "1.25 (1.00 to 1.50)"],
        ["3.00", "2.25 (1.50 to 3.00)", "8.00", "4.00"],
    ]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_every_round_is_measured_in_every_part_by_a_warm_link_and_by_hand(
    tmp_path: Path, java: object
) -> None:
    """That the rows are equal everywhere, each round makes sure of itself."""
    plan = Plan(small=1_000, large=2_000, changes=(10, 990), repeat=2, few=0)
    assert plan.sittings == [[10, 10, 990], [990]]
    with databases.running_pair(tmp_path, databases.ServerKind()) as pair, server(tmp_path) as spark:
        seconds = compare(pair, plan, spark, Progress(Console(quiet=True)))
        rows = [pair.another(part.table).capetown.row(COUNT) for part in plan.parts]
    assert {count: [set(each) for each in rounds] for count, rounds in seconds.items()} == {
        count: [set(plan.parts)] * 2 for count in plan.changes
    }
    assert all(
        min(times.link, times.by_hand) > 0
        for rounds in seconds.values()
        for each in rounds
        for times in each.values()
    )
    assert rows == [(part.rows,) for part in plan.parts]  # as many were deleted as inserted
    assert "Spark Connect listens" in (tmp_path / "spark.log").read_text()
