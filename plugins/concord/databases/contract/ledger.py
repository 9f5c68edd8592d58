"""The records of a site that the controller takes over or clears away: conflicts, and staging left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from concord.jobs.ledger import Overturn
from concord.jobs.site import SiteAccess


class PurgeConflicts(Protocol):
    """Deletes conflicts, or only counts them."""

    def __call__(self, site: SiteAccess, kept: timedelta, now: datetime, *, dry_run: bool) -> int:
        """How many were decided longer ago than `kept`. Raises NotProvisioned where the site was told to keep them for
        longer."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The questions to a site's records. Each raises a ConcordError."""

    #: In batches, for a site, a link, a transmission and a moment: the conflicts that the transmission decided there,
    #: and all that the link decided since the moment.
    conflicts: Callable[[SiteAccess, str, str, datetime], Iterator[Sequence[Mapping[str, Any]]]]
    overturns: Callable[[SiteAccess, datetime], Sequence[Overturn]]  #: losers brought back since a moment
    purge_conflicts: PurgeConflicts
    staging_tables: Callable[[SiteAccess], Sequence[str]]  #: of whatever transmission
    drop_staging: Callable[[SiteAccess, Sequence[str]], None]  #: those that no run will miss
