"""The table of the benchmark of sets with many tables."""

from benchmarks.measurement import Start
from benchmarks.tables import Set, grid, named


def test_a_set_is_a_line_with_each_start_with_nothing_and_with_something_to_send() -> None:
    seconds = {
        (Start.COLD, False): [1.0],
        (Start.COLD, True): [8.0, 9.0, 13.0],
        (Start.WARM, False): [0.2],
        (Start.WARM, True): [0.9],
    }
    shown = grid([Set(named(500), seconds)], 3)
    assert list(shown.head[1:3]) == ["cold, nothing, s", "cold, 3 changed, s"]
    assert shown.rows == [("500", "1.00", "9.00 (8.00 to 13.00)", "0.20", "0.90")]
