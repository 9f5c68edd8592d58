"""The sites that upkeep is told of, and its reports: a cleanup of versions, others that are stamped anew."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from concord.jobs.site import SiteAccess
from concord.tables.replication_set import ReplicatedTable


@dataclass(frozen=True, slots=True)
class CarryingSite:
    """One site, the tables it carries, and for each table the links that leave the site with it."""

    access: SiteAccess
    links_out: Mapping[str, Mapping[str, str]]  #: table name → link name → the site at its other end
    tables: tuple[ReplicatedTable, ...]  #: a table that several row filters share stands here once for each
    remembered: frozenset[str] = frozenset()  #: tables of which no version of a living row is forgotten


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why a site's versions stay, of deleted rows or old ones of living rows: a link that has not passed them yet."""

    link: str
    versions: int
    peer: str = ""  #: the site that has not heard of them


@dataclass(slots=True)
class SiteCleanup:
    """One table at one site: its tombstones and its versions of living rows, how many may go, and who holds the rest
    back."""

    site: str
    table: str
    held: int = 0  #: tombstones
    passed: int = 0  #: that may go
    removed: int = 0
    living: int = 0  #: versions of living rows
    settled: int = 0  #: that may go
    forgotten: int = 0
    forced: int = 0  #: of those that may go: that a link not waited for has not sent
    held_back: list[HeldBack] = field(default_factory=list)
    below_floor: list[str] = field(default_factory=list)  #: links that must be initialized again for it
    problem: str | None = None
    #: The problem of another site, for which nothing of the table may go here either.
    elsewhere: str | None = None
    remembers: str | None = None  #: why no version of a living row goes, anywhere

    @property
    def kept_because(self) -> str:
        """Why versions stay, and who holds each back, whether that site answers or not; empty when all old ones may
        go."""
        holders = [f"{each.link} has not sent {each.versions} to {each.peer}" for each in self.held_back]
        return "; ".join(filter(None, [self.problem or self.elsewhere, *holders]))


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The outcome of a cleanup of every table and site, and why a site could not be asked."""

    tables: tuple[SiteCleanup, ...]
    unreachable: Mapping[str, str]  #: site → one sentence


@dataclass(frozen=True, slots=True)
class Restamped:
    """One row that was stamped in the future, and what became of it."""

    table: str
    key: str  #: as everybody may read it
    old: int  #: µs since 1970 UTC
    new: int | None  #: None: it was left as it is
    why_not: str = ""
