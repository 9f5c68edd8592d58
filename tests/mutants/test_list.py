"""The list of mutants stays true: each can be planted, and its test is there (`make mutants` runs them)."""

import re
from pathlib import Path

import pytest

from tests.mutants.document import DOCUMENT, rewritten
from tests.mutants.every import LISTS, chosen
from tests.mutants.planted import Mutant

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", chosen(()), ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_planted_and_its_test_is_there(mutant: Mutant) -> None:
    assert (PROJECT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.new != mutant.old
    files = re.findall(r"tests/\S+?\.py", mutant.test)
    assert files
    assert all((PROJECT / file).is_file() for file in files)


def test_no_two_mutants_have_one_name() -> None:
    names = [mutant.name for mutant in chosen(())]
    assert len(set(names)) == len(names)


def test_the_document_lists_every_mutant_with_its_test() -> None:
    document = DOCUMENT.read_text()
    assert all(f"`ONLY={name}`" in document for name in LISTS)
    assert rewritten(document) == document, "python -m tests.mutants.document rewrites the tables"
