"""One site while a table is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concord.databases.contract.compared_site import ComparedSite, Extent, Hashing, Horizon, Reader, buckets
from concord.databases.contract.ends import Cut
from concord.databases.contract.rows import Shape
from concord.transmission.opening import at_both


@dataclass(frozen=True)
class Side:
    """Its answers stand still as long as its cut is open; `hashing` is the same at both sites."""

    end: ComparedSite
    shape: Shape
    horizon: Horizon
    extent: Extent
    cut: Cut
    hashing: Hashing

    @property
    def own_reader(self) -> Reader:
        return self.end.own_reader(self.shape, self.cut)

    def readers(self) -> list[Reader]:
        """For this process: the first costs no login."""
        return [self.own_reader, *self.travelling_readers()[1:]]

    def travelling_readers(self) -> Sequence[Reader]:
        return self.end.cut_readers(self.shape, self.cut)

    def scan(self, volatile: Sequence[str]) -> list[str]:
        return self.end.scan(self.shape, self.horizon, self.extent, self.hashing, volatile)

    def held(self, wanted: Sequence[int]) -> str:
        return self.end.held(self.shape, self.horizon, self.hashing, wanted)

    def held_by_key(self, keys: Sequence[str]) -> str:
        return self.end.held_by_key(self.shape, self.horizon, self.hashing, keys)


def sides(
    ends: Sequence[ComparedSite], shapes: Sequence[Shape], horizons: Sequence[Horizon], cuts: Sequence[Cut]
) -> tuple[Side, Side]:
    """Source and target of one table, which hash alike."""
    (source, target), (ours, theirs) = ends, shapes
    extents = at_both(lambda: source.extent(ours), lambda: target.extent(theirs))
    hashing = Hashing(buckets(*extents), source.as_they_are(ours, theirs))
    here, there = (Side(*each, hashing) for each in zip(ends, shapes, horizons, extents, cuts, strict=True))
    return here, there
