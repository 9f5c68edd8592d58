"""What the benchmark of growth edits and prints."""

from itertools import pairwise

from benchmarks.growth import Plan, Results, grids
from benchmarks.measurement import Measurement

PLAN = Plan(sizes=(1_000, 4_000), changes=(10, 100), newest=300, repeat=2)


def test_sets_of_edits_follow_each_other_over_the_older_rows_and_then_over_the_newest() -> None:
    edits = [each for _, each in PLAN.edits(1_000)]
    assert [(each.count, each.first, each.part) for each in edits] == [
        (10, 1, 700),
        *[(10, 1, 700)] * 2,
        *[(100, 1, 700)] * 2,
        *[(10, 701, 300)] * 2,
        *[(100, 701, 300)] * 2,
    ]
    assert all(one.before + one.count == other.before for one, other in pairwise(edits))


def test_every_row_is_edited_once_or_the_plan_is_too_large() -> None:
    assert not PLAN.too_large
    assert Plan((1_000,), (10, 100), newest=229, repeat=2).too_large
    assert Plan((400,), (10, 100), newest=300, repeat=2).too_large


def test_a_line_compares_the_largest_table_with_the_smallest() -> None:
    results = Results(
        {("anywhere", 10): {1_000: [1.0, 2.0], 4_000: [3.0]}}, many=Measurement(9.0, {}, 3 * 1024**2)
    )
    growth, many = grids(PLAN, results)
    assert growth.rows == [("anywhere", "10", "1.50 (1.00 to 2.00)", "3.00", "2.00")]
    assert many.rows == [("0", "9.0", "3")]
