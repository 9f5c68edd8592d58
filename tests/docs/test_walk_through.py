"""The page that walks through the five documents: every item of each stands in one row, in its order."""

import re

import pytest

from tests.conftest import PROJECT
from tests.docs.marks import marks

TEXT = (PROJECT / "docs" / "walk-through.md").read_text()
COVERAGE = (PROJECT / "docs" / "coverage.md").read_text()
#: How many items each document has, in the order of their numbers.
ITEMS = {f"S{document}": count for document, count in enumerate((52, 59, 33, 35, 182))}
#: Left out on purpose.
BOUNDARIES = {"S1-42", "S1-54", "S1-55", "S2-02", "S2-03", "S4-161", "S4-163", "S4-164", "S4-182"}
NOT, YET = "what-is-deliberately-not", "what-is-not-there-so-far"


def section(title: str) -> list[list[str]]:
    """The rows of all tables below a heading of the second level, without heads and rules."""
    [text] = re.findall(rf"^## {re.escape(title)}[^\n]*\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if line.startswith("|") and " --- " not in line]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in rows if any(marks(" ".join(row)))]


def items(cells: list[str]) -> list[str]:
    """The marks of one kind, in the order of the page, each once."""
    return [mark for cell in cells for mark in sorted(set(marks(cell)))]


@pytest.mark.parametrize("document", ITEMS)
def test_each_item_of_a_document_stands_in_one_row_in_its_order(document: str) -> None:
    digits = max(2, len(str(ITEMS[document])))
    expected = [f"{document}-{number:0{digits}}" for number in range(1, ITEMS[document] + 1)]
    assert items([row[0] for row in section(f"{document}: ")]) == expected


@pytest.mark.parametrize("document", ITEMS)
def test_each_row_says_what_it_is_here_and_where_it_is_told(document: str) -> None:
    for mark, theirs, ours, page in section(f"{document}: "):
        assert theirs, mark
        assert ours, mark
        assert page == "this page" or re.search(r"\]\([^)]+\)", page), mark


def test_each_boundary_has_its_reason_and_another_way() -> None:
    """S1-42, S1-54, S1-55, S2-02, S2-03, S4-161, S4-163, S4-164, S4-182: and its row leads there."""
    rows = section("What is deliberately not")
    assert set(items([row[0] for row in rows])) == BOUNDARIES
    assert all(asked and reason and "](" in instead for _, asked, reason, instead in rows)
    assert led_to(NOT) == BOUNDARIES


def test_whatever_is_not_there_so_far_is_listed_where_its_row_leads() -> None:
    assert led_to(YET) == set(items([row[1] for row in section("What is not there so far")]))


def test_nothing_that_a_test_shows_is_listed_as_not_there() -> None:
    shown = re.findall(r"^\| (S\d-\d+) \| (?:yes)? *\| `", COVERAGE, re.MULTILINE)
    assert {"S2-24", "S3-08", "S3-13"} <= set(shown)
    assert led_to(YET) & set(shown) == set()


def test_the_patterns_of_the_documents_are_named() -> None:
    """S0-52: each leads to a page."""
    [text] = re.findall(r"^## Patterns by their names\n(.*)", TEXT, re.DOTALL | re.MULTILINE)
    for pattern in (
        "Move Copy of Data",
        "Master-Master Replication",
        "Snapshot Replication",
        "Cascading Replication",
    ):
        assert re.search(rf"^\| [^|]*\b{pattern}\b[^|]* \| .+ \|$", text, re.MULTILINE), pattern


def led_to(place: str) -> set[str]:
    """The items whose rows lead to that part of the page."""
    rows = [row for document in ITEMS for row in section(f"{document}: ") if f"(#{place})" in row[3]]
    return set(items([row[0] for row in rows]))
