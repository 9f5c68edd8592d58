"""The sites that upkeep is told of, and its reports: a cleanup of tombstones, versions that are stamped anew."""

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


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why a site's tombstones stay: a link that has not passed them yet."""

    link: str
    tombstones: int
    peer: str = ""  #: the site that has not heard of them


@dataclass(slots=True)
class SiteTombstones:
    """One table at one site: how many tombstones it holds, how many may go, who holds the rest back."""

    site: str
    table: str
    held: int = 0
    passed: int = 0
    removed: int = 0
    forced: int = 0  #: of those that may go: that a link not waited for has not sent
    held_back: list[HeldBack] = field(default_factory=list)
    below_floor: list[str] = field(default_factory=list)  #: links that must be initialized again for it
    problem: str | None = None
    elsewhere: str | None = (
        None  #: the problem of another site, for which nothing of the table may go here either
    )

    @property
    def kept_because(self) -> str:
        """Why tombstones stay, and who holds each back, whether that site answers or not; empty when all may go."""
        holders = [f"{each.link} has not sent {each.tombstones} to {each.peer}" for each in self.held_back]
        return "; ".join(filter(None, [self.problem or self.elsewhere, *holders]))


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The outcome of the tombstones of every table and site, and why a site could not be asked."""

    tables: tuple[SiteTombstones, ...]
    unreachable: Mapping[str, str]  #: site → one sentence


@dataclass(frozen=True, slots=True)
class Restamped:
    """One row that was stamped in the future, and what became of it."""

    table: str
    key: str  #: as everybody may read it
    old: int  #: µs since 1970 UTC
    new: int | None  #: None: it was left as it is
    why_not: str = ""
