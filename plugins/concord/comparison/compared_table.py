"""One table at two sites: hashes by bucket at both, then the keys of the buckets that differ.

**Every difference is found.** Row and version of each key enter the hash of their bucket at both sites, in one
consistent cut of each. Buckets whose hashes differ are read key by key. So are the keys that may be in flight. These
are taken out of the buckets again (XOR is its own inverse), so that writers do not make every bucket differ. A bucket
that is not read is equal, but for a chance of 2⁻¹²⁸.

**Nothing in flight is taken for a difference.** Let S and T be the two cuts. Let P be the forward link's position as T
knows it. Let k be a key whose versions differ between S and T although the links work. Its version in S is not in T
yet, or the other way round. Say the former.

A user or another link may have written it at the source. Then it arrived after P: all that P sees was judged at the
target in the transaction that recorded it. The reverse link may have written it, from a cut of the
target later than this one. Then it arrived at the source after that, and P, which is older, does not see it either.

So k *arrived after P*, and the version in T does not include it: a link would apply it, or call it a conflict. The same
holds in the other direction.

A key with neither is a real difference. Two different rows under one version are one in any case, since no link will
ever send either. No wait is needed, and no lease: the order in which the two cuts were taken does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from concord.comparison.buckets import Buckets, summed
from concord.comparison.differences import Differences
from concord.comparison.differing import Differing
from concord.comparison.joined import joined
from concord.comparison.side import Side
from concord.comparison.spark_steps import SparkSteps

#: Keys in flight that are looked at one by one; above, their buckets are read like any that differ.
MOST_VOLATILE = 200_000
#: Keys that are asked for at once, by their names.
KEYS_AT_ONCE = 5_000
#: Rows of both sites in differing buckets that the driver joins itself, at some microseconds each. Spark joins
#: more, which pays where it has more cores than the driver's one.
SPARK_FROM = 4_000_000


@dataclass(frozen=True)
class ComparedTable:
    """One table at two sites, which are read at the same time. Spark joins where many rows must be joined."""

    spark: SparkSteps
    source: Side
    target: Side
    priorities: Mapping[str, int]
    heard: Callable[[float], None]  #: is told which part of the table has been read
    versioned: bool = (
        True  #: versions tell whether a key that differs is under way; else whoever lists it knows
    )

    def differences(self, kept: int) -> Differences:
        """Both sites scanned once; only what differs, or may be in flight, is looked at again."""
        volatile = self._volatile() or ()
        sums = summed(self.source, self.target, volatile, self.heard)
        found = Differences(self.source.shape.name, kept, sums.source_rows, sums.target_rows)
        for at in range(0, len(volatile), KEYS_AT_ONCE):
            found.add(self._of_keys(volatile[at : at + KEYS_AT_ONCE]))
        if wanted := list(sums.differing()):
            known = frozenset(volatile)
            found.add(each for each in self._of_buckets(wanted, sums) if each.key not in known)
        return found

    def _volatile(self) -> list[str] | None:
        """Keys that arrived at either site and may not have been sent, if they are few enough to list."""
        found = [
            side.end.arrived_keys(side.shape, side.horizon, MOST_VOLATILE)
            for side in (self.source, self.target)
        ]
        return None if None in found else sorted({key for keys in found for key in keys or ()})

    def _of_keys(self, keys: Sequence[str]) -> Iterator[Differing]:
        found = self._joined(self.source.held_by_key(keys), self.target.held_by_key(keys))
        return found if self.versioned else (each._replace(in_flight=True) for each in found)

    def _of_buckets(self, wanted: Sequence[int], sums: Buckets) -> Iterator[Differing]:
        if sums.rows(wanted) < SPARK_FROM:
            return self._joined(self.source.held(wanted), self.target.held(wanted))
        return self.spark.joined(self.source, self.target, wanted, self.priorities)

    def _joined(self, source: str, target: str) -> Iterator[Differing]:
        """In this process, and by the sites' own connections."""
        readers = (self.source.own_reader, self.target.own_reader)
        return joined(readers, (source, target), self.priorities, filtered=bool(self.source.shape.where))
