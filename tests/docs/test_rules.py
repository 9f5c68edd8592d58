"""The page of rules names functions and tests that are there, and every second form that the code names."""

import re
from collections.abc import Iterator

import pytest

from tests.conftest import PROJECT

PAGE = (PROJECT / "docs" / "rules.md").read_text()
CELL = re.compile(r"((?:`\w+`(?:,| and)? ?)+)in `([\w./]+\.py)`")
SECOND = re.compile(r"second form\s+of\s+`([\w.]+)`", re.IGNORECASE)


def table(heading: str) -> list[list[str]]:
    """The rows of the table below a heading, by cells."""
    _, _, below = PAGE.partition(f"## {heading}\n")
    lines = below.partition("\n## ")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def named(cell: str) -> Iterator[tuple[str, str]]:
    """Name and file, of all that a cell names."""
    for names, path in CELL.findall(cell):
        yield from ((name, path) for name in re.findall(r"`(\w+)`", names))


SEVERAL, ONE = table("Rules with a second form"), table("Rules with one form")
NAMED = sorted({each for row in (*SEVERAL, *ONE) for cell in row[1:] for each in named(cell)})


@pytest.mark.parametrize(("name", "path"), NAMED)
def test_a_file_has_the_form_or_the_test_that_the_page_names(name: str, path: str) -> None:
    text = (PROJECT / path).read_text()
    assert re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE)


@pytest.mark.parametrize("row", SEVERAL, ids=lambda row: row[0])
def test_a_second_form_names_the_first_and_a_test_holds_the_two_equal(row: list[str]) -> None:
    ((name, path),) = named(row[1])
    assert list(named(row[3]))
    assert all(test.startswith("test_") for test, _ in named(row[3]))
    for _, form in named(row[2]):
        said = SECOND.findall((PROJECT / form).read_text())
        module = path.removeprefix("plugins/concord/").removesuffix(".py").replace("/", ".")
        assert any(
            each == module or each.split(".")[0] == name or name in each.split(".") for each in said
        ), form


def test_every_second_form_that_the_code_names_stands_on_the_page() -> None:
    files = [*(PROJECT / "plugins").rglob("*.py"), *(PROJECT / "spark_jobs").rglob("*.py")]
    forms = {str(path.relative_to(PROJECT)) for path in files if SECOND.search(path.read_text())}
    assert forms == {path for row in SEVERAL for _, path in named(row[2])}


def test_a_rule_has_one_form_in_the_core_and_at_most_one_for_each_engine() -> None:
    for row in SEVERAL:
        in_spark = [path for _, path in named(row[2]) if path.startswith("spark_jobs/")]
        assert len(in_spark) <= 1, row[0]
