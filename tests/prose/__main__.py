"""`python -m tests.prose [FILE …]`: prints each break of a rule as `file:line: …`, and ends with 1 if there is any."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.prose.rules import broken
from tests.prose.subjects import too_long
from tests.prose.texts import of_module, of_page

PROJECT = Path(__file__).parents[2]


def findings(files: list[Path]) -> Iterator[str]:
    """Each finding of these files, in their order and in that of their lines."""
    for file in files:
        text = file.read_text()
        blocks = of_module(text) if file.suffix == ".py" else of_page(text)
        for finding in sorted(broken(blocks), key=lambda each: each.line):
            yield f"{file.relative_to(PROJECT)}:{finding.line}: {finding.said}"


def main(chosen: list[str]) -> int:
    """Check the chosen files, or everything that `tool.prose` in pyproject.toml names. Returns 1 for a finding."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["prose"]
    if chosen:
        found = [*findings([Path(name).resolve() for name in chosen])]
    else:
        files = [file for pattern in settings["files"] for file in sorted(PROJECT.glob(pattern))]
        found = [*findings(files), *too_long(PROJECT, settings["commits-since"])]
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
