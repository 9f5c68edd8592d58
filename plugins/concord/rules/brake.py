"""Brakes: how much one transmission may delete or change before a person has to agree (F95).

A limit is a number of rows, a share of the target's rows, or both: whichever is exceeded first holds. Rows are those
that stand at the target now and would go, or be overwritten; an insert harms nothing that is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from concord.messages.how_many import how_many


class Kind(StrEnum):
    """The subject of a brake."""

    DELETES = "deletes"
    CHANGES = "changes"
    OSCILLATION = "oscillation"
    TRANSACTION = "transaction"  #: of a replication: too large to be replayed unasked (S0-47)


#: Those that are decided by counting.
_COUNTED = (Kind.DELETES, Kind.CHANGES)


class Limit(BaseModel):
    """How many rows may go, or be overwritten; nothing set is no limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int | None = Field(default=None, ge=0)
    share: float | None = Field(
        default=None, ge=0.01, le=1
    )  #: of the target's rows, where it has `smallest_table`

    def exceeded(self, count: int, rows: int, smallest_table: int) -> bool:
        """Do `count` of a table's `rows` need a person's approval?"""
        by_share = self.share is not None and rows >= smallest_table and count > self.share * rows
        return by_share or (self.rows is not None and count > self.rows)

    def may_exceed(self, most: int, smallest_table: int) -> bool:
        """Could as many as `most` rows be too many in a table of any size? Else nobody need count more closely."""
        by_share = self.share is not None and most > self.share * smallest_table
        return by_share or (self.rows is not None and most > self.rows)

    def rows_that_matter(self, count: int, smallest_table: int) -> int:
        """More rows than these change nothing about `count`: a table need not be counted any further."""
        if self.share is None:
            return 1
        return max(smallest_table, math.ceil(count / self.share) + 1)

    def __str__(self) -> str:
        """`50% or 10,000 rows`."""
        share = [] if self.share is None else [f"{round(self.share * 100)}%"]
        return (
            " or ".join([*share, *([] if self.rows is None else [how_many(self.rows, "row")])]) or "no limit"
        )


class Effect(BaseModel):
    """The effect of a transmission on the rows that stand at its target."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deletes: int = 0
    changes: int = 0
    rows: int = 0  #: of the table; not counted beyond what can matter

    def of(self, kind: Kind) -> int:
        return self.deletes if kind is Kind.DELETES else self.changes


class Brakes(BaseModel):
    """The limits of one table in one synchronization.

    By default more deletes than half of a table hold. A DELETE without WHERE, a wrong clone or hidden rows take
    nearly all of them, an ordinary purge less. Changes have no limit: filling a new column rewrites every row, and
    a brake that holds every week is released unread.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    deletes: Limit = Limit(share=0.5)
    changes: Limit = Limit()
    smallest_table: int = Field(default=1000, ge=0)
    oscillation: int | None = (
        10  #: times that a row may come back in answer to a write, run after run; None: ever
    )

    def limit(self, kind: Kind) -> Limit:
        return self.deletes if kind is Kind.DELETES else self.changes

    def may_exceed(self, most: Effect) -> bool:
        """Could as much as this be too much in a table of any size?"""
        return any(self.limit(kind).may_exceed(most.of(kind), self.smallest_table) for kind in _COUNTED)

    def rows_that_matter(self, effect: Effect) -> int:
        """The table need not be counted any further."""
        return max(
            self.limit(kind).rows_that_matter(effect.of(kind), self.smallest_table) for kind in _COUNTED
        )

    def exceeded(self, effect: Effect) -> list[Kind]:
        """Of what it has too much."""
        return [
            kind
            for kind in _COUNTED
            if self.limit(kind).exceeded(effect.of(kind), effect.rows, self.smallest_table)
        ]

    def reason(self, kind: Kind) -> str:
        """Why these brakes hold something of that kind."""
        if kind in _COUNTED:
            return f"{kind}: more than {self.limit(kind)}"
        return f"{kind}: rewritten run after run, each time in answer to the last write"


class Hold(BaseModel):
    """One reason why a transmission waits for a person."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    kind: Kind
    count: int
    rows: int  #: of the table; of an oscillation, those that came in

    def __str__(self) -> str:
        """`public.flights: 8,000 deletes of 10,000 rows`; only what is counted is told so."""
        what = how_many(self.count, self.kind.removesuffix("s"))
        return f"{self.table}: {what} of {how_many(self.rows, 'row')}"


class Approval(BaseModel):
    """A person's approval: one kind for one table, up to a count, and where the link stood when it was held.

    Once the link has gone on from there, the approval is worth nothing. A table that oscillates stands still while
    the link goes on with the others, so that there `since` is empty.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    kind: Kind
    up_to: int
    since: str  #: id of the session that the held transmission went on from

    def covers(self, hold: Hold, since: str) -> bool:
        same = (self.table, self.kind, self.since) == (hold.table, hold.kind, since)
        return same and hold.count <= self.up_to


def headroom(count: int) -> int:
    """The count up to which an approval of `count` holds: users go on while a person thinks."""
    return count + max(100, count // 5)


def holds(
    effects: Mapping[str, Effect],
    brakes: Mapping[str, Brakes],
    approvals: Sequence[Approval],
    since: str,
) -> list[Hold]:
    """The holds that a person still has to approve before anything is written, in the order of the tables."""
    return [
        hold
        for hold in _exceeding(effects, brakes)
        if not any(approval.covers(hold, since) for approval in approvals)
    ]


def _exceeding(effects: Mapping[str, Effect], brakes: Mapping[str, Brakes]) -> Iterable[Hold]:
    for table, effect in effects.items():
        for kind in brakes[table].exceeded(effect):
            yield Hold(table=table, kind=kind, count=effect.of(kind), rows=effect.rows)
