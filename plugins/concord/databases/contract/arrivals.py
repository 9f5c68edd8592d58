"""A watch of a link's source: it hears of the site's commits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

from concord.jobs.site import Credentials


@dataclass(frozen=True, slots=True)
class WatchedLink:
    """A link as a watch of its source sees it."""

    name: str  #: `london_capetown/forward`
    source: str
    peer: str
    tables: frozenset[str]  #: by their names in the replication set


class Arrivals(Protocol):
    """Tells what has something for a link, without end."""

    def __call__(
        self, login: Credentials, link: WatchedLink, *, listen: bool, poll: float | None
    ) -> AsyncGenerator[frozenset[str], None]:
        """The tables that have something for the link, again and again: heard of (`listen`), or looked for every `poll`
        seconds.

        The first answer, empty where nothing is pending, says that the watch stands. Raises SiteUnavailable or another
        ConcordError as soon as the site does not answer.
        """
