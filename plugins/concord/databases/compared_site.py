"""The dialect contract of a comparison: what it asks of a site, whichever database that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from concord.databases.dialect import LinkState, SiteRow, Snapshot
from concord.databases.reading import Reading
from concord.repair import Held
from concord.row_version import RowVersion

#: Sums of one part of a table: which they are (`source_rows`, `target_volatile`), bucket, rows, two 64-bit hashes
#: combined by XOR.
SCAN_SCHEMA = "part string, bucket bigint, rows bigint, x1 bigint, x2 bigint"

#: What one site holds of a key: the hash of its row (NULL: none), and its version (NULL: never changed).
HELD_SCHEMA = (
    "key string, x1 bigint, x2 bigint, origin string, changed_at bigint, derived int, vector string,"
    " deleted boolean, born boolean, arrived boolean, outside boolean, left_filter boolean"
)

#: Base rows in a bucket, about: a single differing row makes this many travel.
ROWS_PER_BUCKET = 2_000
MOST_BUCKETS = 2**20


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a comparison stands at one site: what has arrived since `since` may be unsent."""

    since: str  #: position of the link that leaves the site, as its target knew it
    floor: int  #: the greater of both sites' stamp floors (µs)


@dataclass(frozen=True, slots=True)
class Extent:
    """How large a table is at one site, by its catalogue."""

    rows: int
    blocks: int


def buckets(*extents: Extent) -> int:
    """How many buckets both sites use: a power of two, by the larger table."""
    rows = max(extent.rows for extent in extents)
    return max(64, min(MOST_BUCKETS, 1 << (rows // ROWS_PER_BUCKET).bit_length()))


@dataclass(frozen=True, slots=True)
class Found:
    """What a site holds of a key: its version, and the hash of its row (None: no row)."""

    version: RowVersion
    image: tuple[int, int] | None
    outside: bool  #: a row of the site's own stands there, outside of the row filter
    left: bool  #: the version is one of a row outside of the filter

    def held(self, site: str, origin: str) -> Held:
        return Held(site, origin, self.version, self.image is not None, self.outside, self.left)


@dataclass(frozen=True, slots=True)
class Scan:
    """What both sites are asked alike, but for `role`: source or target, the first word of every `part`."""

    role: str
    buckets: int
    volatile: Sequence[str]


class ComparedSite(Protocol):
    """A site that is only read. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def site(self) -> SiteRow: ...

    def state(self, link: str) -> LinkState: ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """One consistent cut: everything below is answered in it while it is open."""

    def altered_since(self, shapes: Sequence[Any]) -> dict[str, str]:
        """The tables that are not what they were when these shapes were taken, each with what to say of it."""

    def probe(self) -> int:
        """Equal at two sites whose hashes agree."""

    def extent(self, shape: Any) -> Extent: ...

    def arrived_keys(self, shape: Any, cut: Cut, most: int) -> list[str] | None:
        """Keys that may not have been sent yet; None when there are more than `most`."""

    def scan(self, shape: Any, cut: Cut, extent: Extent, scan: Scan, snapshot: Snapshot) -> Reading:
        """Hashes by bucket (SCAN_SCHEMA), with those of the volatile keys taken out again."""

    def held(
        self,
        shape: Any,
        cut: Cut,
        extent: Extent,
        buckets: int,
        wanted: Sequence[int] | None,
        snapshot: Snapshot,
    ) -> Reading:
        """What the site holds in the `wanted` buckets, or in all (HELD_SCHEMA)."""

    def held_by_key(self, shape: Any, cut: Cut, keys: Sequence[str], snapshot: Snapshot) -> Reading:
        """What the site holds of the listed keys (HELD_SCHEMA)."""

    def found(self, shape: Any, cut: Cut, keys: Sequence[str]) -> dict[str, Found]:
        """The same, for the driver."""

    def images(self, shape: Any, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """The whole rows of the listed keys that have one, as exact texts."""

    def rows_of(self, shape: Any, keys: Sequence[str], snapshot: Snapshot) -> Reading:
        """The listed keys as they travel, beside `key`, the text of the key."""
