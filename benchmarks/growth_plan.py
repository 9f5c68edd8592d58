"""Which rows of a small and of large tables are edited, how often, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.bookings import WARM_UP, Edits

#: So many and fewer changes take a moment, which other things of a machine's easily double: each is measured OFTEN.
FEW, OFTEN = 100_000, 5


@dataclass(frozen=True)
class Part:
    """A table, and its rows that are edited."""

    name: str
    table: str  #: what its databases are called after
    rows: int
    first: int
    size: int
    recent: int  #: so many of the newest rows are in memory


@dataclass(frozen=True)
class Plan:
    """The same changes in a small table, in as many of the newest rows of a large one, and in all of another."""

    small: int
    large: int
    changes: Sequence[int]
    repeat: int
    few: int = FEW

    @property
    def parts(self) -> tuple[Part, ...]:
        """The edited rows are alike in the first two: they differ in the size of the table alone."""
        name, newest = f"{self.large:,} rows", f"the newest {self.small:,} edited"
        older = self.large - self.small
        return (
            Part(f"{self.small:,} rows", "small", self.small, 1, self.small, self.small),
            Part(f"{name}, {newest}", "newest", self.large, older + 1, self.small, self.small),
            Part(f"{name}, all edited", "large", self.large, 1, self.large, self.small),
        )

    @property
    def too_large(self) -> bool:
        """No row may be edited twice."""
        return _edited(WARM_UP, max(self.changes)) > self.small or self.small > self.large

    @property
    def sittings(self) -> Sequence[Sequence[int]]:
        """Numbers of changes by the tables that they share: new ones are made when too few unedited rows are left."""
        counts = [each for each in self.changes for _ in range(OFTEN if each <= self.few else self.repeat)]
        made: list[list[int]] = []
        for count in counts:
            if not made or _edited(WARM_UP, *made[-1], count) > self.small:
                made.append([])
            made[-1].append(count)
        return made

    @staticmethod
    def link_first(sitting: int, ordinal: int) -> bool:
        """Whether the link precedes the script in a round: the second finds in memory what the first has read."""
        return (sitting + ordinal) % 2 == 0

    def edits(self, part: Part, sitting: int) -> Iterator[Edits]:
        """Sets of edits of a part; the first is one that nobody measures."""
        before = 0
        for count in (WARM_UP, *self.sittings[sitting]):
            yield Edits(part.rows, count, before, part.first, part.size)
            before += _edited(count)

    def rounds(self, sitting: int) -> Iterator[Sequence[tuple[Part, Edits]]]:
        """The same number of changes in every part, each time another one first."""
        every = zip(*(self.edits(part, sitting) for part in self.parts), strict=True)
        for ordinal, edits in enumerate(every):
            first = (sitting + ordinal) % len(self.parts)
            each = list(zip(self.parts, edits, strict=True))
            yield [*each[first:], *each[:first]]


def _edited(*counts: int) -> int:
    """How many rows that the table was made with."""
    return sum(Edits(1, count).touched for count in counts)
