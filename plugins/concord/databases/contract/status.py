"""A site's answers about itself to people: its links, what waits there, what is under way. By its reader's login."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from concord.jobs.site import SiteAccess
from concord.values.identifier import TableName


@dataclass(frozen=True, slots=True)
class LinkAtSite:
    """One link as one of its ends remembers it; `updated_at` is when its newest session was written there."""

    link: str
    role: str
    peer: str
    updated_at: datetime
    forced_at: datetime | None  #: since when the link is refused, because tombstones were removed by force
    tables: int
    history: Sequence[Mapping[str, Any]]  #: its sessions, newest first, as the site stores them
    floor: str | None  #: the session up to which tombstones are gone


@dataclass(frozen=True, slots=True)
class InitializationAtSite:
    """How far the initialization of one table is."""

    synchronization: str
    table_name: str
    how: str
    phase: str
    looked_at: int
    total: int
    started_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DroppedIndex:
    """An index that a first load has dropped, and has not built yet."""

    relation: str
    name: str
    dropped_at: datetime
    definition: str


@dataclass(frozen=True, slots=True)
class LogAtSite:
    """The log that a site keeps whose changes are read from it."""

    kept: int | None  #: bytes; None where it keeps none
    state: str | None  #: as the database calls it
    lost: str | None  #: why it does not tell any more what users do


@dataclass(frozen=True, slots=True)
class WaitingAtSite:
    """How many rows of a table wait at a site for one link, since when, and what was said of the first."""

    synchronization: str
    link: str
    table_name: str
    kind: str
    count: int
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A table that is to be brought back."""

    synchronization: str
    table: str
    begun_from: str | None  #: an initialization has begun with it, and not ended: the site whose rows hold


@dataclass(frozen=True, slots=True)
class Pending:
    """How many rows a link would look at now, and when the oldest of them was changed."""

    rows: int = 0
    oldest: datetime | None = None

    def __add__(self, other: Pending) -> Pending:
        moments = [each for each in (self.oldest, other.oldest) if each is not None]
        return Pending(self.rows + other.rows, min(moments, default=None))


@dataclass(frozen=True, slots=True)
class TableSize:
    """About how large a table is."""

    table: str
    rows: int
    bytes: int  #: on disk, without its indexes


#: A site's links that lead away, each with the fingerprints of its tables' row filters.
Carried = Mapping[str, Mapping[str, str | None]]


@dataclass(frozen=True, slots=True)
class Status:
    """The questions to a site. Each raises a ConcordError where it does not answer."""

    links: Callable[[SiteAccess], Sequence[LinkAtSite]]
    waiting: Callable[[SiteAccess], Sequence[WaitingAtSite]]  #: held or quarantined
    asked: Callable[[SiteAccess], Sequence[Asked]]  #: tables that conflicts ask to bring back
    initializations: Callable[
        [SiteAccess], Sequence[InitializationAtSite]
    ]  #: those that keep their progress here
    dropped_indexes: Callable[[SiteAccess], Sequence[DroppedIndex]]
    log: Callable[[SiteAccess], LogAtSite | None]  #: None where its changes are not read from it
    pending: Callable[
        [SiteAccess, Carried], Mapping[str, Pending]
    ]  #: of the links that have begun at the site
    sizes: Callable[[SiteAccess, Iterable[TableName]], Sequence[TableSize]]  #: of those that exist
