"""A version stamped in the future gets a stamp of now, where it was made, if no other site has accepted it.

A vector entry never decreases, because others may hold it. An entry that lies in the future is held by its own site
alone: the others refuse it (F13, F14).

So the version is replaced by a new one. The new one has seen all that the
old one had seen of versions that stand elsewhere, and nobody elsewhere has seen the new one. For every other site
nothing else changes. Where another site has accepted such an entry, the old version is known there, and stays.

The new version claims nothing of another site's entry that it drops. That site may have stamped its edit anew, and
edited since, under names that the old entry only seems to cover. An edit is rather taken for a conflict than for
seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from concord.versions.row_version import Dot, RowVersion, Vector, next_stamp, unite

#: Characters of the origins of a vector. One that has more was made up: only what other sites know of it is kept.
MOST_NAMED = 16_384


@dataclass(frozen=True, slots=True)
class Clock:
    """The bounds of a site's stamps (µs): its clock, the latest stamp that all sites accept, and its stamp
    floor."""

    origin: str
    now: int
    latest: int
    floor: int


def ahead(version: RowVersion, clock: Clock) -> dict[str, Dot]:
    """The entries of the version's vector that lie in the future; empty: it need not be stamped anew."""
    return {origin: entry for origin, entry in version.vector.items() if entry[0] > clock.latest}


def accepted(version: RowVersion, elsewhere: Vector, clock: Clock) -> bool:
    """Has another site accepted what would have to be dropped? `elsewhere`: the union of all other sites' vectors of
    the row."""
    return any(elsewhere.get(origin, (0, 0))[0] > clock.latest for origin in ahead(version, clock))


def restamped(version: RowVersion, elsewhere: Vector, clock: Clock) -> RowVersion:
    """The version that takes its place: an edit of this site's, made now. It claims to have seen nothing that the old
    one did not name, and is later than all that anybody has seen of this site."""
    dropped = ahead(version, clock)
    vector = {origin: entry for origin, entry in version.vector.items() if origin not in dropped}
    if sum(map(len, vector)) > MOST_NAMED:
        vector = {origin: entry for origin, entry in vector.items() if origin in elsewhere}
    seen_of_here = {clock.origin: elsewhere.get(clock.origin, (0, 0))}
    at = next_stamp(unite(vector, seen_of_here), clock.now, clock.floor)
    vector[clock.origin] = (at, 0)
    return replace(version, origin=clock.origin, changed_at=at, derived=0, vector=vector)
