"""Every mark that code, tests and pages cite stands on the page of references, and the page explains no other."""

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.docs.marks import MARK, ONE, marks

PAGE = PROJECT / "docs" / "references.md"
#: They list marks, and cite none.
LISTS = {
    PAGE,
    *(PROJECT / "docs" / name for name in ("coverage.md", "walk-through.md")),
    *(PROJECT / "tests" / "docs" / name for name in ("coverage.py", "marks.py")),
}
ROOMS = "plugins", "spark_jobs", "dags", "tests", "docs"
FILES = sorted(
    path
    for room in ROOMS
    for path in (PROJECT / room).rglob("*")
    if path.suffix in {".py", ".md"} and path not in {*LISTS, Path(__file__)}
)
INVARIANT = re.compile(MARK.format(r"(I\d{1,2})"))
#: Marks whose meaning nobody finds here.
FOREIGN = re.compile(
    MARK.format(r"[DS]\d{1,2}")
    + r"|\bdesign(?:\.md|,? rule)?\s+\d|\bfailure-modes\b|\blab\s+[a-z]+\d|\b(?:airflow|checklist)\.md\b"
    + r"|\bstyle, rule|\bissue\s+\d",
    re.IGNORECASE,
)


def explained(page: Path) -> list[str]:
    """The first cell of every row that explains a mark."""
    cells = re.findall(r"^\| ([\w-]+) \|", page.read_text(), re.MULTILINE)
    rules = [f"rule {cell}" for cell in cells if cell.isdigit()]
    return [*rules, *(cell for cell in cells if ONE.fullmatch(cell))]


def test_no_mark_is_explained_twice() -> None:
    assert sorted(explained(PAGE)) == sorted(set(explained(PAGE)))


def test_every_mark_that_is_named_is_explained() -> None:
    known = set(explained(PAGE))
    unknown = {
        (mark, str(path.relative_to(PROJECT)))
        for path in FILES
        for mark in marks(path.read_text())
        if mark not in known
    }
    assert unknown == set()


def test_no_mark_is_explained_that_nobody_names() -> None:
    named = {mark for path in FILES for mark in marks(path.read_text())}
    assert set(explained(PAGE)) - named == set()


@pytest.mark.parametrize("room", ROOMS)
def test_no_mark_of_another_kind_is_left(room: str) -> None:
    files = [path for path in FILES if path.is_relative_to(PROJECT / room)]
    assert files
    found = {
        (foreign[0], str(path.relative_to(PROJECT)))
        for path in files
        for foreign in FOREIGN.finditer(path.read_text())
    }
    assert found == set()


def test_an_invariant_is_named_by_tests_alone_and_stands_on_the_page_of_proof() -> None:
    known = set(re.findall(r"^\| (I\d+) \|", (PROJECT / "docs" / "proof.md").read_text(), re.MULTILINE))
    named = {
        (mark, path.relative_to(PROJECT).parts[0])
        for path in FILES
        for mark in INVARIANT.findall(path.read_text())
    }
    assert {mark for mark, _ in named} <= known
    assert {room for _, room in named} == {"tests", "docs"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(plugins/[\w/]+\.py)`", PAGE.read_text()))))
def test_the_file_that_keeps_a_rule_is_there(path: str) -> None:
    assert (PROJECT / path).is_file()
