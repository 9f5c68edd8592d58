"""Work at sites beside their links: by the schedule of maintenance, or by a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from concord.jobs.ledger import Entry, Overturn
from concord.jobs.link import LinkJob
from concord.jobs.site import Credentials
from concord.jobs.upkeep import CarryingSite, Cleanup, Restamped
from concord.messages.pace import Tell, silent


class Clean(Protocol):
    """Forgets versions that all sites have had."""

    def __call__(
        self,
        sites: Sequence[CarryingSite],
        *,
        dry_run: bool,
        now_us: int,
        min_age_us: int,
        living_age_us: int | None = None,
        force_older_than: timedelta | None = None,
        tell: Tell = silent,
    ) -> Cleanup:
        """Forget what every link of every site has passed: tombstones older than `min_age_us`, and versions of living
        rows older than `living_age_us`; None: no such version.

        A table with a site that does not answer stays as it is, and the report says so. With `force_older_than` it does
        not, where no link has heard of that site for so long. A dry run only counts.
        """


class Restamp(Protocol):
    """Stamps versions from the future anew."""

    def __call__(
        self, sites: Sequence[CarryingSite], name: str, table: str | None, epochs: Mapping[str, int] | None, /
    ) -> Iterator[Restamped]:
        """Those of one table, or of all, at the site of that name, under the epochs of its synchronizations.

        Without epochs it writes nothing, and says which rows it would stamp. Raises a ConcordError.
        """


class OverturnEntry(Protocol):
    """Brings the loser of a conflict back."""

    def __call__(self, job: LinkJob, entry: Entry, person: str, *, although_changed: bool) -> Overturn:
        """Write the loser of `entry` at the target of `job`, the site that decided it, and remember who asked for it.

        `although_changed`: even if the row is no longer what won. Raises OverturnRefused, or what a site raises.
        """


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The upkeep that a database offers. `remembered` and `forget` take an installer's login, and the site's name."""

    clean: Clean
    restamp: Restamp
    overturn: OverturnEntry
    remembered: Callable[
        [Credentials, str], Sequence[tuple[str, str]]
    ]  #: links, each with the site at its other end
    forget: Callable[
        [Credentials, str, Sequence[str]], None
    ]  #: links that have left the configuration for good
