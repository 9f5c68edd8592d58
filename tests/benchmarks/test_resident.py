"""What the benchmark of a Spark that stays prints."""

from benchmarks.resident import Pace, grid


def test_a_line_has_the_medians_the_ranges_and_their_ratio() -> None:
    shown = grid([Pace(10_000, cold=[8.0, 9.0, 13.0], warm=[1.0, 1.8, 2.0])])
    assert shown.rows == [("10,000", "9.00 (8.00 to 13.00)", "1.80 (1.00 to 2.00)", "0.20")]
