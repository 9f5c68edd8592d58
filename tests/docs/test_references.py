"""Every mark that code, tests and pages cite stands on the page of references, and the page explains no other."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PROJECT

PAGE = PROJECT / "docs" / "references.md"
ROOMS = "plugins", "spark_jobs", "dags", "tests", "docs"
FILES = sorted(
    path
    for room in ROOMS
    for path in (PROJECT / room).rglob("*")
    if path.suffix in {".py", ".md"} and path not in {PAGE, Path(__file__)}
)
#: What is no part of a longer word, number, path or time of day.
MARK = r"(?<![\w#/.…-]){}(?![\w-]|:\d)"
#: F401 and T201 are ruff's, and no marks.
KIND = r"((?:F|T)(?=\d\d\b)|S[0-4]-)"
ONE = re.compile(MARK.format(KIND + r"(\d{2,3})"))
SEVERAL = re.compile(MARK.format(KIND + r"(\d{2,3})\s+to\s+\1(\d{2,3})"))
RULES = re.compile(r"\brules?\s+(\d+(?:(?:,\s+|\s+and\s+|\s+to\s+)\d+)*)", re.IGNORECASE)
INVARIANT = re.compile(MARK.format(r"(I\d{1,2})"))
#: Marks whose meaning nobody finds here.
FOREIGN = re.compile(
    MARK.format(r"[DS]\d{1,2}")
    + r"|\bdesign(?:\.md|,? rule)?\s+\d|\bfailure-modes\b|\blab\s+[a-z]+\d|\b(?:airflow|checklist)\.md\b"
    + r"|\bstyle, rule|\bissue\s+\d",
    re.IGNORECASE,
)


def marks(text: str) -> Iterator[str]:
    """All that a text names, and all that its ranges name."""
    yield from (found[0] for found in ONE.finditer(text))
    for kind, first, last in SEVERAL.findall(text):
        yield from (f"{kind}{number:0{len(first)}}" for number in range(int(first), int(last) + 1))
    for found in RULES.findall(text):
        numbers = [int(number) for number in re.findall(r"\d+", found)]
        between = range(numbers[0], numbers[-1] + 1) if " to " in found else numbers
        yield from (f"rule {number}" for number in between)


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
