"""A mistake found in the configuration, and where: the path of its key."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from concord.configuration.secret import looks_secret
from concord.messages.errors import Problem

#: Keys of mappings and indices of lists, from the top of the file.
Path = tuple[str | int, ...]
_LONGEST_KEY = 40


class Finding(NamedTuple):
    """A mistake at a path; after a semicolon, its remedy. A line is given where the path has two."""

    path: Path
    text: str
    line: int | None = None

    def problem(self, file: str, lines: Mapping[Path, int]) -> Problem:
        message, _, hint = self.text.partition("; ")
        return Problem(file, self.line or line_of(self.path, lines), dotted(self.path), message, hint)


def line_of(path: Path, lines: Mapping[Path, int]) -> int:
    """The line of the key, or of the nearest key above it that is written in the file."""
    return next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)


def below_any(path: Path, others: Collection[Path]) -> bool:
    """Whether the path, or one above it, is among the others."""
    return any(path[:n] in others for n in range(len(path) + 1))


def dotted(path: Path) -> str:
    """`replication_sets.flights.tables[0].key`; strange keys are quoted and cut, secret ones hidden."""
    return "".join(_step(part) for part in path).removeprefix(".")


def _step(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if looks_secret(part):
        return ".(hidden)"
    if re.fullmatch(r"[A-Za-z0-9_-]{1,63}", part):
        return f".{part}"
    return "." + ascii(part if len(part) <= _LONGEST_KEY else part[:_LONGEST_KEY] + "...")
