"""The rests of a throttled run: between two batches, when no transaction is open at either site (S0-46)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import pendulum

from concord.jobs.throttle import Throttle

#: Seconds after which a run that rests looks whether it is to end, or the hours have ended.
_LOOKS = 0.2


def _now() -> datetime:
    return pendulum.now("UTC")


@dataclass
class Pacer:
    """Counts what is replayed, and rests until that has taken as long as its throttle wants."""

    throttle: Throttle
    asked_to_end: Callable[[], bool]
    now: Callable[[], datetime] = _now
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _operations: int = 0
    _since: float = 0.0

    def add(self, operations: int) -> None:
        """So many more come, from now on."""
        if not self._operations:
            self._since = self.clock()
        self._operations += operations

    def rest(self) -> None:
        """They are replayed. Whoever wants the run to end need not wait."""
        while (left := self._left) > 0 and not self.asked_to_end():
            self.sleep(min(left, _LOOKS))
        self._operations = 0

    @property
    def _left(self) -> float:
        return self.throttle.left(self._operations, self.clock() - self._since, self.now())
