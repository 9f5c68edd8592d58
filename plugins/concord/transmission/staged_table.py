"""The fate of the changes of one table when they were staged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from concord.transmission.verdicts import UNFAITHFUL

#: Reasons that an error repeats where a verdict stops a table.
SHOWN = 3


@dataclass(frozen=True)
class StagedTable:
    """The report of the tasks: the attempts to believe, rows per verdict, bytes staged."""

    attempts: tuple[int, ...] = ()
    settled: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    removals: int = 0  #: how many of them may take a row away
    bytes: int = 0
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  #: a few of each verdict that stops

    @property
    def unfaithful(self) -> tuple[str, ...]:
        """Why some rows cannot be mapped, a few of them."""
        return self.reasons.get(UNFAITHFUL, ())


def some(reasons: Iterable[str]) -> tuple[str, ...]:
    """A few of them, each once."""
    return tuple(sorted(set(reasons))[:SHOWN])
