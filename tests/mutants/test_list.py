"""Every planted error can be planted, and its test exists (`make planted` runs them)."""

import re
from pathlib import Path

import pytest

from tests.mutants.lists import LISTS, chosen
from tests.mutants.mutant import Mutant
from tests.mutants.place import place

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", chosen(()), ids=lambda mutant: mutant.name)
def test_an_error_can_be_planted_and_its_test_exists(mutant: Mutant) -> None:
    here = place(mutant, PROJECT)
    assert mutant.new != mutant.old
    compile(here.mutated(mutant), here.file, "exec")
    files = re.findall(r"tests/\S+?\.py", mutant.test)
    assert files
    assert all((PROJECT / file).is_file() for file in files)


def test_no_two_errors_have_one_name() -> None:
    names = [mutant.name for mutant in chosen(())]
    assert len(set(names)) == len(names)


def test_every_list_that_is_written_is_run() -> None:
    written = {file.stem for file in (PROJECT / "tests" / "mutants" / "planted").glob("*.py")} - {"__init__"}
    assert written == set(LISTS)


def test_an_error_is_chosen_by_its_list_its_name_or_its_place() -> None:
    [first, *_] = LISTS["queued"]
    assert chosen(["queued"])[: len(LISTS["queued"])] == list(LISTS["queued"])
    assert chosen([first.name]) == [first]
    assert first in chosen([first.at])
    assert chosen(["no such word"]) == []
