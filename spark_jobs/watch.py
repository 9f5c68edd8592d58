"""The steps of an application: how long each took, and who wants to hear of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from concord.databases.dialect import Progress


@dataclass
class Watch:
    """Seconds per step, in the order the steps were first taken; and who wants to hear of them."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.progress(name)
        began = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + monotonic() - began, 3)
