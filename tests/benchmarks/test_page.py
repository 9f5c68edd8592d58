"""The page of results has a place for every benchmark that records them, and one target runs all."""

import re
from collections.abc import Iterator

import pytest

from benchmarks import record
from demo.environment import PROJECT


def _recorded() -> Iterator[str]:
    """Modules that have an option to record."""
    for path in sorted((PROJECT / "benchmarks").glob("*.py")):
        if "add_places(made, PART)" in path.read_text():
            yield path.stem


@pytest.mark.parametrize("part", [*_recorded(), "results"])
def test_the_page_has_a_place_for_every_benchmark_that_records(part: str) -> None:
    begin, end = record.markers(part)
    text = record.PAGE.read_text()
    assert text.count(begin) == text.count(end) == 1
    assert text.index(begin) < text.index(end)


def test_one_target_runs_every_benchmark_that_records() -> None:
    (listed,) = re.findall(r"^BENCHMARKS = (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(listed.split()) == list(_recorded())
