"""A publisher's log, for whoever waits for its next entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from concord.jobs.link import Direction


@dataclass(frozen=True, slots=True)
class WatchedLog:
    """One direction of a replication, for whoever only looks at its publisher's log."""

    replication: str
    replication_set: str
    direction: Direction
    both_ways: bool


class LogWatch(Protocol):
    """Looks at a publisher's log again and again. Every method raises ConcordError alone."""

    def look(self) -> int | None:
        """Where the first entry that waits was committed; None while a run reads the log, or where nothing waits."""

    def close(self) -> None: ...
