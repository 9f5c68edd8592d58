"""The two sites' parts in a person's decision on a conflict: whose rows stand (S2-21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

#: By table: keys, each a list of texts.
Keys = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Choice:
    """A person's choice between two sites' rows, as the conflict log tells it."""

    synchronization: str
    link: str
    transmission: str
    winner: str
    loser: str
    reason: str


class Decision(Protocol):
    """One site's part in it, while its transaction is open and nobody else writes its tables."""

    @property
    def own_level(self) -> int:
        """Of this site's log: no user's transaction up to it is missing, and later ones have higher numbers."""

    def rows(self) -> Mapping[str, bytes]:
        """Its rows of the keys, as another site's `give_way` takes them."""

    def give_way(self, rows: Mapping[str, bytes], choice: Choice) -> int:
        """Take these rows; its own that differ go into the conflict log. Returns their number."""

    def pass_over(self, until: int) -> None:
        """Let the replay pass over the other site's operations on these keys up to that number."""
