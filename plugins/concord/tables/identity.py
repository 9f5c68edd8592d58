"""Identity ranges: which generated numbers each site hands out, so that no two sites hand out one (S2-18, F48)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from pydantic import BaseModel, ConfigDict

#: Sites that a suggested `identity` leaves room for.
SLOTS = 10

#: The greatest number that a sequence can hold.
GREATEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Share:
    """The numbers of one site: first, first + step, … up to last."""

    first: int
    last: int
    step: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last and (number - self.first) % self.step == 0

    def at_or_after(self, number: int) -> int:
        """The least number of the share that is not below `number`; beyond `last` when it is exhausted."""
        return max(self.first, number + (self.first - number) % self.step)

    @property
    def and_one_more(self) -> Share:
        """Where a sequence may stand: past its last number, when all are handed out."""
        return Share(self.first, self.last + self.step, self.step)

    @property
    def described(self) -> str:
        """As messages say it."""
        if self.step == 1:
            return f"{self.first} to {self.last}"
        return f"every {self.step}th number from {self.first} on"

    def first_common(self, other: Share) -> int | None:
        """The least number that both hand out, or None: the Chinese remainder theorem, for any steps."""
        shared = gcd(self.step, other.step)
        apart, unequal = divmod(other.first - self.first, shared)
        if unequal:
            return None
        width = other.step // shared
        steps = apart * pow(self.step // shared, -1, width) % width
        both = Share(self.first + steps * self.step, min(self.last, other.last), self.step * width)
        number = both.at_or_after(max(self.first, other.first))
        return number if number <= both.last else None


class Identity(BaseModel):
    """How a table's numbers are shared out: every `slots`-th from a site's slot on, or one range for each site."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: int | None = None
    slot: Mapping[str, int] | None = None
    ranges: Mapping[str, tuple[int, int]] | None = None

    def share(self, site: str) -> Share:
        """The numbers that `site` may hand out. Raises KeyError for a site that has no share."""
        if self.ranges is not None:
            first, last = self.ranges[site]
            return Share(first, last, 1)
        assert self.slots is not None, "the configuration has one of the two"
        assert self.slot is not None, "slots come with slot"
        return Share(self.slot[site], GREATEST, self.slots)

    @property
    def sites(self) -> frozenset[str]:
        """Every site that has a share."""
        return frozenset(self.ranges if self.ranges is not None else self.slot or ())
