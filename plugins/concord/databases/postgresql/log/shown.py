"""Which transactions a snapshot shows: the log has 32 bits of a transaction's id, a snapshot has all of them."""

from __future__ import annotations

from dataclasses import dataclass

_HALF, _ALL = 1 << 31, (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Shown:
    """A `pg_snapshot`. It shows transactions as a whole: of their parts it knows nothing."""

    xmin: int
    xmax: int
    open: frozenset[int]  #: those between the two that it does not show

    @classmethod
    def of(cls, text: str) -> Shown:
        """`10:20:12,15`, as PostgreSQL writes a snapshot."""
        xmin, xmax, listed = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(map(int, filter(None, listed.split(",")))))

    def whole(self, low: int) -> int:
        """The id whose last 32 bits are these: the one next to this snapshot. No other can stand in a log of its
        time."""
        return self.xmax + ((low - self.xmax + _HALF) & _ALL) - _HALF

    def shows(self, transaction: int) -> bool:
        """As PostgreSQL's own `pg_visible_in_snapshot` answers."""
        return transaction < self.xmin or (transaction < self.xmax and transaction not in self.open)
