"""The page of results has a place for every benchmark that records them, and one target runs all."""

import re
from importlib import import_module

import pytest

from benchmarks import lag, record
from demo.environment import PROJECT

MODULES = [import_module(f"benchmarks.{path.stem}") for path in (PROJECT / "benchmarks").glob("[a-z]*.py")]
#: Modules that record, by the parts of the page that are theirs.
PARTS = {module.PART: module.__name__ for module in MODULES if hasattr(module, "PART")} | {
    mode.part: lag.__name__ for mode in lag.MODES.values()
}


@pytest.mark.parametrize("part", [*sorted(PARTS), "results"])
def test_the_page_has_a_place_for_every_benchmark_that_records(part: str) -> None:
    begin, end = record.markers(part)
    text = record.PAGE.read_text()
    assert text.count(begin) == text.count(end) == 1
    assert text.index(begin) < text.index(end)


def test_one_target_runs_every_benchmark_that_records() -> None:
    (listed,) = re.findall(r"^BENCHMARKS := (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(f"benchmarks.{each}" for each in listed.split()) == sorted(
        {"benchmarks.link", *PARTS.values()}
    )
