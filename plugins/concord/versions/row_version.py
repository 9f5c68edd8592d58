"""Which version of a row is this, and has one version seen the other?

A vector maps an origin (`site#incarnation`) to the newest (`changed_at` µs, `derived`) of that origin's
changes to this row that the version includes. Causality comes first; clocks only order the concurrent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

Dot = tuple[int, int]
Vector = Mapping[str, Dot]


#: No stamp is later (µs): the numbers of a version leave room for many more edits.
LATEST = 1 << 62

#: Of a stamp that stands at a site all the same, edits still get later ones up to here.
NEWEST = (1 << 63) - (1 << 32)

#: No version is derived from others more often.
MOST_DERIVED = 1 << 30

BOUNDS = (LATEST, MOST_DERIVED)

#: An origin: the name of a site, and its incarnation.
ORIGIN = r"^[^#]+#[1-9]\d{0,8}$"


def unite(left: Vector, right: Vector) -> dict[str, Dot]:
    """The least vector that includes both; entries never decrease."""
    origins = sorted({*left, *right})
    nothing = (0, 0)
    return {origin: max(left.get(origin, nothing), right.get(origin, nothing)) for origin in origins}


def vector_of(stored: object) -> dict[str, Dot]:
    """`{"london#1": [1732170000000000, 0]}` as a vector. It may be another site's, and hold anything: an entry that is
    none has seen nothing."""
    entries = stored.items() if isinstance(stored, dict) else ()
    return {origin: (entry[0], entry[1]) for origin, entry in entries if is_entry(entry)}


def vector_from_json(text: str) -> dict[str, Dot]:
    """The same of a text. One that is no JSON has seen nothing."""
    try:
        return vector_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def is_entry(value: object) -> TypeGuard[Sequence[int]]:
    """Is this, out of JSON, the entry of a vector?"""
    return (
        isinstance(value, list)
        and len(value) == len(BOUNDS)
        and all(type(n) is int and 0 <= n <= most for n, most in zip(value, BOUNDS, strict=True))
    )


def vector_to_json(vector: Vector) -> str:
    """The inverse of `vector_from_json`."""
    return json.dumps({origin: list(vector[origin]) for origin in sorted(vector)})


@dataclass(frozen=True, slots=True)
class RowVersion:
    """The version of one row: who changed it last, when, and what that change had seen.

    `changed_at` is in µs since 1970 UTC; `derived` is 0 for an edit, higher for merges and repairs.
    """

    origin: str
    changed_at: int
    derived: int
    vector: Vector
    deleted: bool = False
    born: bool = False  #: the key did not exist in the common history: an insert, wherever it arrives

    @property
    def dot(self) -> tuple[str, int, int]:
        """The parts that make two versions the same one (rule 4)."""
        return (self.origin, self.changed_at, self.derived)

    @property
    def site(self) -> str:
        return self.origin.partition("#")[0]

    @property
    def incarnation(self) -> int:
        """0 where the origin, which another site may have made up, names none."""
        return int(self.origin.partition("#")[2]) if re.match(ORIGIN, self.origin, re.ASCII) else 0

    @property
    def is_absent(self) -> bool:
        """True for the row nobody has ever changed: common history, the empty vector (rule 8)."""
        return not self.origin

    def includes(self, other: RowVersion) -> bool:
        """Has this version seen `other`? One cheap test, the same in every dialect."""
        if other.is_absent:
            return True
        return self.vector.get(other.origin, (0, 0)) >= (other.changed_at, other.derived)

    def shares_history_with(self, other: RowVersion) -> bool:
        """Have both seen a change of one origin? Then the earlier one of the two they saw is known to both."""
        return not self.vector.keys().isdisjoint(other.vector)

    def united_with(self, other: RowVersion) -> RowVersion:
        """This version, having seen the other: its vector becomes the union."""
        return replace(self, vector=unite(self.vector, other.vector), born=self.born or other.born)


def newest(vector: Vector) -> int:
    """The newest stamp (µs) that the vector knows; 0 where it knows none."""
    return max((changed_at for changed_at, _ in vector.values()), default=0)


def next_stamp(vector: Vector, now: int, stamp_floor: int) -> int:
    """When an edit is stamped that has seen `vector` (µs): later than all of it, and than the site's stamp floor."""
    return max(now, newest(vector) + 1, stamp_floor + 1)


def from_the_future(incoming: RowVersion, present: RowVersion, now: int, allowed: int) -> bool:
    """Is the stamp of `incoming` further ahead of the target's clock than clocks may be apart (µs)? (F13, F14)

    A stamp that the row's own history at the target already exceeds is no surprise. Else a row whose stamp was once
    accepted could never be followed by a later edit.
    """
    return not present.includes(incoming) and incoming.changed_at > max(now, newest(present.vector)) + allowed


ABSENT = RowVersion(origin="", changed_at=0, derived=0, vector={})
