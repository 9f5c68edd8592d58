"""The measures of one run: seconds in all, seconds per part, bytes of memory; and the same of several runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median


@dataclass(frozen=True)
class Measurement:
    """One run of one program: `wall` is the whole process from start to end, in seconds."""

    wall: float
    parts: Mapping[str, float]
    memory: int = 0  #: the most that was seen; 0 where nobody looked

    def seconds(self, part: str) -> float:
        return self.parts.get(part, 0.0)


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and their range."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        """Raises ValueError when there is none."""
        return cls(median(numbers), min(numbers), max(numbers))


class Start(StrEnum):
    """How a link gets its Spark: one of its own, or one that stays; or none, its driver's threads carry all rows."""

    COLD = "cold"
    WARM = "warm"
    THREADS = "in threads"


@dataclass
class Point:
    """Every repetition of one number of changes in a table of one size: Concord's link, and by hand."""

    table_rows: int
    changes: int
    link: Mapping[Start, list[Measurement]] = field(default_factory=lambda: {start: [] for start in Start})
    by_hand: list[Measurement] = field(default_factory=list)

    def link_seconds(self, start: Start, *parts: str) -> Spread:
        return _spread(self.link[start], lambda each: sum(each.seconds(part) for part in parts))

    def by_hand_seconds(self, *parts: str) -> Spread:
        return _spread(self.by_hand, lambda each: sum(each.seconds(part) for part in parts))

    def link_wall(self, start: Start) -> Spread:
        return _spread(self.link[start], lambda each: each.wall)

    @property
    def by_hand_wall(self) -> Spread:
        return _spread(self.by_hand, lambda each: each.wall)

    @property
    def link_memory(self) -> Spread:
        """Bytes of a link with a Spark of its own: of one that stays, only a part belongs to the link."""
        return _spread(self.link[Start.COLD], lambda each: each.memory)


def _spread(runs: Sequence[Measurement], number: Callable[[Measurement], float]) -> Spread:
    return Spread.of([number(each) for each in runs])
