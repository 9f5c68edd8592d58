"""The work of one run of a replication so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from time import monotonic

from concord.transactional.overlap import Carried


@dataclass
class Account:
    """The work of a run so far."""

    level_from: int = 0
    level_to: int = 0
    begun: bool = False
    entries: int = 0
    largest: int = 0
    bytes: int = 0
    set_aside: int | None = None
    until: float = inf  #: when the run hands over to the next one
    newest: float = 0.0  #: when it last replayed an entry
    told: int = 0  #: the level that the publisher last heard of,
    confirmed: float = -inf  #: and when
    #: The publisher's clock, and ours at that moment: their seconds pass alike.
    clock: tuple[datetime, float] | None = None
    lag: float | None = None  #: seconds from an entry's commit to its replay, of the one that waited longest
    effects: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def begin(self, level: int, run_for: float) -> None:
        """The log is read after the level; again after each place at which a table was altered."""
        self.level_to = level
        if not self.begun:
            self.begun, self.level_from, self.newest = True, level, monotonic()
            self.until = self.newest + run_for

    def add(self, carried: Carried) -> None:
        """A batch is staged, and replayed as far as entries have ended with it."""
        batch, done = carried.batch, carried.done
        self.bytes += batch.bytes
        self.largest = max(self.largest, batch.largest)
        if batch.level is None or done is None:
            return
        self.level_to, self.newest = batch.level, monotonic()
        self.entries += done.entries
        self._see(batch.committed_at, carried.ended)
        self.set_aside = done.set_aside if self.set_aside is None else self.set_aside
        for table, effects in done.effects.items():
            self.effects[table].update(effects)

    def settle(self, end: int) -> None:
        """Nothing waits up to the end of the log."""
        self.level_to = max(self.level_to, end)
        self.lag = self.lag or 0.0

    def tell_time(self, at: datetime) -> None:
        """It is `at` by the publisher's clock."""
        self.clock = (at, monotonic())

    def _see(self, committed_at: datetime | None, ended: float) -> None:
        """The first entry of a batch has waited longest."""
        if self.clock is None or committed_at is None:
            return
        at, then = self.clock
        waited = at + timedelta(seconds=ended - then) - committed_at
        self.lag = max(self.lag or 0.0, waited.total_seconds())
