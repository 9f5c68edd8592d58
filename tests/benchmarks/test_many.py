"""The table of the benchmark of very many changes."""

from benchmarks.many import grid
from benchmarks.measurement import Measurement


def test_the_seconds_and_the_memory_of_one_link_are_a_line() -> None:
    assert grid(10_000_000, Measurement(9.0, {}, 3 * 1024**2)).rows == [("10,000,000", "9.0", "3")]
