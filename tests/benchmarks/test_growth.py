"""What the benchmark of growth edits, keeps in memory and prints."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from benchmarks.bookings import creation
from benchmarks.growth import BY_INDEX, OFTEN, Plan, grid, reading
from tests.conftest import Database

PLAN = Plan(small=2_000, large=8_000, changes=(10, 1_100), repeat=2)


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
    made = [[(each.count, each.before) for each in PLAN.edits(part)] for part in PLAN.parts]
    assert made[0] == made[1] == made[2]


def test_every_part_has_a_table_of_its_own() -> None:
    assert len({part.table for part in PLAN.parts}) == len(PLAN.parts)


def test_each_part_comes_first_in_turn_and_each_is_measured_in_every_round() -> None:
    orders = [[part.table for part, _ in each] for each in PLAN.rounds(turn=1)]
    assert orders[:3] == [
        ["newest", "large", "small"],
        ["large", "small", "newest"],
        ["small", "newest", "large"],
    ]
    for each in PLAN.rounds(turn=2):
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
    assert [each.count for each in PLAN.edits(PLAN.parts[0])] == [10, *[10] * OFTEN, 1_100]
    many = replace(PLAN, few=1_100)
    assert [each.count for each in many.edits(PLAN.parts[0])] == [10, *[10] * OFTEN, *[1_100] * OFTEN]


def test_no_row_is_edited_twice_or_the_plan_is_too_large() -> None:
    edits = list(PLAN.edits(PLAN.parts[1]))
    assert all(one.before + one.touched == other.before for one, other in pairwise(edits))
    assert not PLAN.too_large
    touched = edits[-1].before + edits[-1].touched
    assert not Plan(touched, 8_000, PLAN.changes, repeat=9).too_large
    assert Plan(touched - 1, 8_000, PLAN.changes, repeat=1).too_large
    assert Plan(touched, touched - 1, PLAN.changes, repeat=1).too_large


def test_a_line_compares_each_large_table_with_the_small_one_of_the_same_round() -> None:
    small, newest, every = PLAN.parts
    rounds = [{small: 1.0, newest: 1.5, every: 3.0}, {small: 2.0, newest: 2.0, every: 3.0}]
    assert grid(PLAN, {10: rounds}).rows == [
        [
            "10",
            "2",
            "1.50 (1.00 to 2.00)",
            *("1.75 (1.50 to 2.00)", "1.25 (1.00 to 1.50)"),
            *("3.00", "2.25 (1.50 to 3.00)"),
        ]
    ]
