"""Settings for the numbers that sites generate: slots of one progression, or ranges (S2-18)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, model_validator

from concord.configuration.field import ByName, Settings
from concord.tables.identity import GREATEST, Identity


def _in_order(bounds: tuple[int, int]) -> tuple[int, int]:
    first, last = bounds
    if not 1 <= first <= last <= GREATEST:
        raise ValueError(f"no range; write [first, last], from 1 to {GREATEST}, the smaller first")
    return bounds


Range = Annotated[tuple[StrictInt, StrictInt], AfterValidator(_in_order)]


class IdentitySettings(Settings):
    """Which numbers each site's sequences and identity columns hand out: `slots` and `slot`, or `ranges`."""

    slots: StrictInt | None = Field(
        default=None,
        ge=2,
        le=100_000,
        description="How many sites there can ever be: every sequence counts in steps of this.",
    )
    slot: ByName[StrictInt] | None = Field(
        default=None, description="From 1 to slots: the remainder that is each site's own."
    )
    ranges: ByName[Range] | None = Field(
        default=None, description="Instead of slots: the first and the last number of each site."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> IdentitySettings:
        if (self.ranges is None) == (self.slots is None and self.slot is None):
            raise ValueError("either slots and slot, or ranges; write one of the two")
        if self.ranges is None and (self.slots is None or self.slot is None):
            raise ValueError("slots and slot belong together; write both")
        if problem := next(self._clashes(), None):
            raise ValueError(problem)
        return self

    def _clashes(self) -> Iterator[str]:
        for site, number in (self.slot or {}).items():
            if self.slots is not None and not 1 <= number <= self.slots:
                yield f"slot {number} of site '{site}' is none of 1 to {self.slots}; choose another, or raise slots"
        for (site, number), (other, twin) in combinations((self.slot or {}).items(), 2):
            if number == twin:
                yield f"sites '{site}' and '{other}' have the same slot {number}; give each its own"
        for (site, one), (other, two) in combinations((self.ranges or {}).items(), 2):
            if one[0] <= two[1] and two[0] <= one[1]:
                yield f"the ranges of sites '{site}' and '{other}' overlap; give each its own"

    def identity(self) -> Identity:
        """The same as links and provisioning carry it."""
        slot, ranges = self.slot and dict(self.slot), self.ranges and dict(self.ranges)
        return Identity(slots=self.slots, slot=slot, ranges=ranges)
