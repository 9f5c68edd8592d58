"""The steps of an application: how long each took, and who wants to hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from concord.databases.contract.ends import Progress
from concord.messages.pace import Meter, Tell, silent, told


def unheard(step: str) -> None:
    """Nobody wants to hear of the steps."""


def nothing_to_ask() -> None:
    """Few rows, or a work that tells of its own accord how far it is."""


@dataclass
class Steps:
    """Seconds per step, in the order the steps were first taken; who hears of them, and how far they are."""

    progress: Progress
    tell: Tell = silent
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.progress(name)
        began = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + monotonic() - began, 3)

    @contextmanager
    def long_step(self, name: str, meter: Meter, look: Callable[[], None] = nothing_to_ask) -> Iterator[None]:
        """A step that tells how far it is where it takes long."""
        with self.step(name), told(self.tell, meter, look):
            yield
