"""What the benchmark of growth edits and prints."""

from collections.abc import Callable
from itertools import pairwise

import psycopg

from benchmarks.growth import OFTEN, Plan, Results, grid
from tests.conftest import Database

PLAN = Plan(small=2_000, large=8_000, changes=(10, 1_100), repeat=2)


def test_the_same_edits_are_made_in_all_rows_of_the_small_table_and_in_the_newest_and_older_of_the_large_one() -> (
    None
):
    parts = [(each.rows, each.first, each.size) for each in PLAN.parts]
    assert parts == [(2_000, 1, 2_000), (8_000, 6_001, 2_000), (8_000, 1, 6_000)]
    made = [[(each.count, each.before - part.passed) for each in PLAN.edits(part)] for part in PLAN.parts]
    assert made[0] == made[1] == made[2]


def test_no_two_parts_share_a_row_or_the_key_of_a_new_one(database: Callable[[], Database]) -> None:
    _, newest, older = PLAN.parts
    with psycopg.connect(database().uri) as connection:
        keys = [
            {key for key, _ in connection.execute(edits.keys.encode()).fetchall()}
            for part in (newest, older)
            for edits in PLAN.edits(part)
        ]
    assert sum(map(len, keys)) == len(set().union(*keys))


def test_few_changes_are_measured_more_often() -> None:
    assert [each.count for each in PLAN.edits(PLAN.parts[0])] == [10, *[10] * OFTEN, 1_100]


def test_no_row_is_edited_twice_or_the_plan_is_too_large() -> None:
    edits = list(PLAN.edits(PLAN.parts[1]))
    assert all(one.before + one.touched == other.before for one, other in pairwise(edits))
    assert not PLAN.too_large
    touched = edits[-1].before + edits[-1].touched
    assert not Plan(touched, 8_000, PLAN.changes, repeat=9).too_large
    assert Plan(touched - 1, 8_000, PLAN.changes, repeat=1).too_large
    assert Plan(touched, 2 * touched - 1, PLAN.changes, repeat=1).too_large


def test_a_line_compares_the_large_table_with_the_small_one() -> None:
    small, newest, older = PLAN.parts
    results = Results()
    for part, seconds in ((small, 1.0), (small, 2.0), (newest, 1.5), (older, 3.0)):
        results.add(10, part, seconds)
    assert grid(PLAN, results).rows == [["10", "1.50 (1.00 to 2.00)", "1.50", "1.00", "3.00", "2.00"]]
