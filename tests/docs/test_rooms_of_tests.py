"""Tests stand in rooms that have the names of the code's, or of what they show."""

import re
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.docs.rooms_of_tests import PAGE, TESTS, folder_of, folders, pointed_at, rewritten, rooms, said

#: More than a person takes in at one look.
MOST = 20


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(PROJECT)))
def test_a_folder_says_in_one_or_two_sentences_what_its_tests_show(folder: Path) -> None:
    assert 1 <= len(re.findall(r"[.!)](?= |$)", said(folder))) <= 2, said(folder)


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: str(folder.relative_to(PROJECT)))
def test_a_folder_is_taken_in_at_one_look(folder: Path) -> None:
    assert len(list(folder.glob("test_*.py"))) <= MOST


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_of_the_code_has_tests_or_says_where_they_stand(room: str) -> None:
    folder = rooms()[room]
    if not any(folder.rglob("test_*.py")):
        elsewhere = pointed_at(folder)
        assert elsewhere, f"{folder.relative_to(PROJECT)}/__init__.py says neither what it tests nor who does"
        assert all(any(path.rglob("test_*.py")) for path in elsewhere)


def test_a_rooms_folder_has_its_name() -> None:
    assert folder_of("concord.databases.postgresql.facts") == TESTS / "databases" / "postgresql" / "facts"
    assert folder_of("spark_jobs") == TESTS / "spark_jobs"


def test_the_page_lists_every_subject() -> None:
    page = PAGE.read_text()
    assert "<!-- subjects: begin -->" in page
    assert rewritten(page) == page, "run `python -m tests.docs.rooms_of_tests`"


def test_no_test_imports_another_one() -> None:
    """Helpers that two tests share stand in a file that is named for what it gives."""
    shared = re.compile(r"^from (tests\.\S*test_\w+) import|^from tests\.\S+ import test_", re.MULTILINE)
    found = {str(file): shared.findall(file.read_text()) for file in TESTS.rglob("*.py")}
    assert {file: imports for file, imports in found.items() if imports} == {}
