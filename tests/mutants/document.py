"""The lists as the document shows them: `python -m tests.mutants.document` rewrites its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.every import LISTS
from tests.mutants.planted import Mutant

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"

#: A table belongs to the list whose name is written before it.
_TABLE = re.compile(r"(`ONLY=(\w+)`[^|]*)(?:\|[^\n]*\n)+")


def rewritten(text: str) -> str:
    """The document with the tables as they should be."""
    return _TABLE.sub(lambda found: found[1] + "".join(_table(found[2])), text)


def _table(name: str) -> Iterator[str]:
    yield "| error | found by |\n|---|---|\n"
    yield from map(_row, LISTS[name])


def _row(mutant: Mutant) -> str:
    return f"| {mutant.name} | `{mutant.test.replace('tests/', '')}` |\n"


if __name__ == "__main__":
    DOCUMENT.write_text(rewritten(DOCUMENT.read_text()))
