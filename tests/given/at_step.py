"""Something happens when a link takes a step."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class At:
    """Acts once, when a link reaches a step for the n-th time."""

    step: str
    act: Callable[[], object]
    occurrence: int = 1
    reached: int = 0

    def __call__(self, step: str) -> None:
        self.reached += step == self.step
        if step == self.step and self.reached == self.occurrence:
            self.act()
