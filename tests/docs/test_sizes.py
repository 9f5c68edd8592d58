"""No module and no function of the product is longer than a person reads at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT

MODULE, FUNCTION, NINE_IN_TEN = 300, 40, 25
FILES = [file for part in ("plugins/concord", "spark_jobs") for file in (PROJECT / part).rglob("*.py")]


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Name and length of each in lines, its decorators left out."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PROJECT)))
def test_a_module_and_its_functions_are_short_enough_to_be_read_at_once(file: Path) -> None:
    source = file.read_text()
    assert len(source.splitlines()) <= MODULE
    assert [name for name, lines in functions(source) if lines > FUNCTION] == []


def test_nine_functions_in_ten_are_much_shorter() -> None:
    lengths = sorted(lines for file in FILES for _, lines in functions(file.read_text()))
    assert len(lengths) > 2_000, "it looks where it should"
    assert lengths[len(lengths) * 9 // 10] <= NINE_IN_TEN


def test_a_function_that_is_too_long_is_named() -> None:
    source = "def short() -> None: ...\n\n\ndef long() -> None:\n" + "    ...\n" * FUNCTION
    assert [name for name, lines in functions(source) if lines > FUNCTION] == ["long"]
