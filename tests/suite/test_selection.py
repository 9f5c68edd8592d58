"""The tests that `make test` leaves out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.suite.selection import chosen, left_out

FILE = """\
import pytest

@pytest.mark.parametrize("capture", ["triggers", "log"])
@pytest.mark.parametrize("table", ["flights", "airlines", "planes"])
def test_doubled(capture, table): ...

@pytest.mark.parametrize(("capture", "step"), [("triggers", "a"), ("log", "a"), ("triggers", "b"), ("log", "c")])
def test_of_steps(capture, step): ...

@pytest.mark.parametrize("table", ["flights", "airlines"])
def test_of_two_tables(table): ...

@pytest.mark.long
def test_that_takes_long(): ...

@pytest.mark.parametrize("table", ["flights", pytest.param("every table", marks=pytest.mark.long)])
def test_of_which_one_takes_long(table): ...

@pytest.mark.parametrize("judged", ["at the target", pytest.param("by Spark", marks=pytest.mark.long)])
def test_of_whose_two_forms_one_is_expensive(judged): ...
"""

COMMITS = [f"commit {number}" for number in range(20)]


@pytest.fixture
def items(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> list[pytest.Item]:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nmarkers = long: takes long\n")
    return pytester.inline_genitems(pytester.makepyfile(FILE))[0]


def run_at(items: list[pytest.Item], commit: str) -> list[str]:
    omitted = set(left_out(items, commit))
    return [item.name for item in items if item not in omitted]


def test_of_a_doubled_parameter_one_value_is_run_with_all_values_of_the_others(
    items: list[pytest.Item],
) -> None:
    found = [[name for name in run_at(items, commit) if "doubled" in name] for commit in COMMITS]
    halves = [
        [f"test_doubled[{table}-{capture}]" for table in ("flights", "airlines", "planes")]
        for capture in ("triggers", "log")
    ]
    assert all(names in halves for names in found)
    assert all(half in found for half in halves), "another commit chooses the other value"


def test_a_test_that_no_other_value_repeats_is_run_at_every_commit(items: list[pytest.Item]) -> None:
    for commit in COMMITS:
        names = {name for name in run_at(items, commit) if "of_steps" in name}
        assert names > {"test_of_steps[triggers-b]", "test_of_steps[log-c]"}
        assert len(names) == 3


def test_other_parameters_are_run_with_all_their_values(items: list[pytest.Item]) -> None:
    for commit in COMMITS:
        names = run_at(items, commit)
        assert {"test_of_two_tables[flights]", "test_of_two_tables[airlines]"} <= set(names)


def test_what_is_marked_long_is_left_out(items: list[pytest.Item]) -> None:
    names = run_at(items, "any")
    assert "test_that_takes_long" not in names
    assert [name for name in names if "one_takes_long" in name] == ["test_of_which_one_takes_long[flights]"]


def test_a_value_that_takes_long_is_never_the_chosen_one(items: list[pytest.Item]) -> None:
    for commit in COMMITS:
        names = [name for name in run_at(items, commit) if "two_forms" in name]
        assert names == ["test_of_whose_two_forms_one_is_expensive[at the target]"]


@given(st.sets(st.text(), min_size=1), st.text())
def test_a_choice_is_one_of_the_values_and_does_not_depend_on_their_order(
    values: set[str], seed: str
) -> None:
    assert chosen(sorted(values), seed) == chosen(sorted(values, reverse=True), seed)
    assert chosen(values, seed) in values
