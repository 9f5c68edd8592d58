"""Conflicts that somebody else's function decides, found among staged rows, and what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Question:
    """One conflict, which the function's resolver is the first of its chain to decide."""

    place: str  #: of the row in staging
    against: str  #: the present version: the answer holds for it alone
    #: Both rows and both versions, by the columns that Spark would hand to the function's step.
    shown: Mapping[str, object]


class Answer(NamedTuple):
    """The decision on one conflict: the function's, or of the rest of its chain."""

    verdict: str
    resolver: str | None
    reason: str | None
    row: str | None  #: the new row as JSON, each value as the text that the database reads
