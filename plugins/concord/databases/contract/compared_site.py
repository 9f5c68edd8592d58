"""The dialect contract of a comparison: what it asks of a site, whichever database that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from concord.databases.contract.ends import Cut
from concord.databases.contract.memory import LinkState, SiteRow
from concord.databases.contract.reading import Reading
from concord.rules.repair_rule import Held
from concord.versions.row_version import RowVersion

#: Staging's marks of a row beside its version.
DECIDED = ("verdict", "resolver", "reason", "against")

#: Base rows in a bucket, about: a single differing row makes this many travel.
ROWS_PER_BUCKET = 2_000
FEWEST_BUCKETS = 64
#: Bounds what the driver keeps, and what each query answers.
MOST_BUCKETS = 2**17


class Sums(NamedTuple):
    """The answer of one query about one bucket."""

    bucket: int
    rows: int  #: negative where rows are taken out of the bucket again
    x1: int  #: 64-bit hashes, combined by XOR
    x2: int


class HeldRow(NamedTuple):
    """One site's state of a key: the hash of its row (None: none), and its version (None: never changed)."""

    place: int  #: hash of the key, the same at both sites; they are told in its order, and then in the key's
    key: str
    x1: int | None
    x2: int | None
    origin: str | None
    changed_at: int | None
    derived: int | None
    vector: str | None
    deleted: bool | None
    born: bool | None
    arrived: bool
    outside: bool
    left: bool
    settled: bool = (
        False  #: one of the sites may have forgotten the version: all links have sent it (rule 10)
    )

    @property
    def same(self) -> tuple[object, ...]:
        """Equal at two sites that hold the same row under the same version."""
        return self[2:7]


@dataclass(frozen=True, slots=True)
class Horizon:
    """Where a comparison stands at one site: what has arrived since `since` may be unsent."""

    since: str  #: position of the link that leaves the site, as its target knew it
    floor: int  #: the greater of both sites' stamp floors (µs)


@dataclass(frozen=True, slots=True)
class Extent:
    """How large a table is at one site, by its catalogue, and how large what is known of its rows' versions."""

    rows: int
    blocks: int
    version_blocks: int


def buckets(*extents: Extent) -> int:
    """How many buckets both sites use: a power of two, by the larger table."""
    rows = max(extent.rows for extent in extents)
    return max(FEWEST_BUCKETS, min(MOST_BUCKETS, 1 << (rows // ROWS_PER_BUCKET).bit_length()))


@dataclass(frozen=True, slots=True)
class Found:
    """A site's state of a key: its version, and the hash of its row (None: no row)."""

    version: RowVersion
    image: tuple[int, int] | None
    outside: bool  #: a row of the site's own stands there, outside of the row filter
    left: bool  #: the version is one of a row outside of the filter

    def held(self, site: str, origin: str) -> Held:
        return Held(site, origin, self.version, self.image is not None, self.outside, self.left)


@dataclass(frozen=True, slots=True)
class Hashing:
    """The parts that both sites must do alike, or equal rows would have other hashes."""

    buckets: int
    as_they_are: frozenset[str]  #: columns hashed as values; all others as their exact canonical texts


class Reader(AbstractContextManager["Reader"], Protocol):
    """Answers one question of a comparison after the other, in one connection that stands in the site's cut.

    Every error that it raises is a ConcordError. One that has opened no connection yet can be sent to another process.
    """

    def sums(self, question: str) -> list[Sums]: ...

    def held(self, question: str) -> Iterator[HeldRow]:
        """In the order of `place` and `key`, never all of them in memory."""


class ComparedSite(Protocol):
    """A site that is only read. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def site(self) -> SiteRow: ...

    def state(self, link: str) -> LinkState: ...

    def cut(self) -> AbstractContextManager[Cut]:
        """One consistent cut: everything below is answered in it while it is open."""

    def altered_since(self, shapes: Sequence[Any]) -> dict[str, str]:
        """The tables that are not what they were when these shapes were taken, each with what to say of it."""

    def probe(self) -> int:
        """Equal at two sites whose hashes agree."""

    def extent(self, shape: Any) -> Extent: ...

    def as_they_are(self, shape: Any, other: Any) -> frozenset[str]:
        """The columns that may be hashed as values, given the table's shape at either site."""

    def arrived_keys(self, shape: Any, horizon: Horizon, most: int) -> list[str] | None:
        """Keys that may not have been sent yet; None when there are more than `most`."""

    def own_reader(self, shape: Any, cut: Cut) -> Reader:
        """The connection that holds the cut: it costs no login, and stays in this process."""

    def cut_readers(self, shape: Any, cut: Cut) -> Sequence[Reader]:
        """As many as may be asked at the same time, none of which has opened a connection yet."""

    def scan(
        self, shape: Any, horizon: Horizon, extent: Extent, hashing: Hashing, volatile: Sequence[str]
    ) -> list[str]:
        """Questions about sums: together all rows and versions, those of the volatile keys taken out again."""

    def held(self, shape: Any, horizon: Horizon, hashing: Hashing, wanted: Sequence[int]) -> str:
        """The question what the site holds in the `wanted` buckets."""

    def held_by_key(self, shape: Any, horizon: Horizon, hashing: Hashing, keys: Sequence[str]) -> str:
        """The question what it holds of the listed keys, each told of."""

    def found(self, shape: Any, horizon: Horizon, keys: Sequence[str]) -> dict[str, Found]:
        """The site's state of the listed keys, at this moment."""

    def images(self, shape: Any, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """The whole rows of the listed keys that have one, as exact texts."""

    def decided(self, shape: Any, decisions: Mapping[str, Mapping[str, Any]], cut: Cut) -> Reading:
        """Keys with their rows as they travel, the versions decided for them, and the DECIDED columns: what a repair
        stages."""
