"""A person's decision about rows that users of both sites have changed, as both ends take part in it (S2-21)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

#: By table: keys, each a list of texts.
Keys = Mapping[str, Sequence[Sequence[str]]]
#: By table: rows as one site gives them and another one takes them.
Rows = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Choice:
    """A person's choice between two sites' rows, as the conflict log tells it."""

    synchronization: str
    link: str
    transmission: str
    winner: str
    loser: str
    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """How a decision keeps users from writing the tables."""

    seconds: float  #: for which transactions of users are waited for
    is_look: bool = False  #: no table is locked, and nothing of it stands


FOR_A_PERSON = Hold(10.0)


class Decision(Protocol):
    """One site's part in it, while its transaction is open and nobody else writes its tables."""

    @property
    def own_level(self) -> int:
        """Of this site's log: no user's transaction up to it is missing, and later ones have higher numbers."""

    def rows(self) -> Rows:
        """Its rows of the keys."""

    def before(self, number: int) -> Rows:
        """The rows of the keys as the entry, which is staged here, met them at its publisher."""

    def give_way(self, rows: Rows, before: Rows, choice: Choice) -> int:
        """Take these rows. Its own that users here changed, and that differ, go into the conflict log.

        Returns their number. Raises ConstraintViolated, naming the rows of other keys that are in the way.
        """

    def pass_over(self, until: int) -> None:
        """Let the replay pass over the other site's operations on these keys up to that number."""
