"""The work of one run of a replication so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from concord.transactional.overlap import Carried


@dataclass
class Account:
    """The work of a run so far."""

    level_from: int
    level_to: int
    entries: int = 0
    largest: int = 0
    bytes: int = 0
    set_aside: int | None = None
    until: float = inf  #: when the run hands over to the next one
    newest: float = 0.0  #: when it last replayed an entry
    told: int = 0  #: the level that the publisher last heard of,
    confirmed: float = -inf  #: and when
    effects: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, carried: Carried) -> None:
        """A batch is staged, and replayed as far as entries have ended with it."""
        batch, done = carried.batch, carried.done
        self.bytes += batch.bytes
        self.largest = max(self.largest, batch.largest)
        if batch.level is None or done is None:
            return
        self.level_to, self.newest = batch.level, monotonic()
        self.entries += done.entries
        self.set_aside = done.set_aside if self.set_aside is None else self.set_aside
        for table, effects in done.effects.items():
            self.effects[table].update(effects)
