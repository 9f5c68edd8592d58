"""A test that acts at a step names one that the code takes; a renamed step would disarm it without a word."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT

#: The calls by which the code tells of a step.
TELLING = {"progress", "step", "long_step"}


def first_words(folders: tuple[str, ...], calls: set[str]) -> Iterator[tuple[str, Path]]:
    """The literal first argument of every such call."""
    for file in (file for folder in folders for file in (PROJECT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if name in calls and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, file


TAKEN = {step for step, _ in first_words(("plugins/concord", "spark_jobs"), TELLING)}
NAMED = {step: file.name for step, file in first_words(("tests",), {"At"})}


def test_the_code_tells_of_its_steps() -> None:
    assert len(TAKEN) > 20
    assert len(NAMED) > 10


@pytest.mark.parametrize("step", sorted(NAMED))
def test_a_step_at_which_a_test_acts_is_taken(step: str) -> None:
    assert step in TAKEN, NAMED[step]
