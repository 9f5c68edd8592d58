"""The list of mutants stays true: each can be planted, and its test is there (`make mutants` runs them)."""

import re
from pathlib import Path

import pytest

from tests.mutants.planted import MUTANTS, Mutant

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_planted_and_its_test_is_there(mutant: Mutant) -> None:
    assert (PROJECT / mutant.file).read_text().count(mutant.old) == 1
    assert mutant.new != mutant.old
    files = re.findall(r"tests/\S+?\.py", mutant.test)
    assert files
    assert all((PROJECT / file).is_file() for file in files)


def test_the_document_lists_every_mutant_with_its_test() -> None:
    document = (PROJECT / "docs/proof.md").read_text()
    for mutant in MUTANTS:
        assert f"| {mutant.name} | `{mutant.test.replace('tests/', '')}` |" in document
