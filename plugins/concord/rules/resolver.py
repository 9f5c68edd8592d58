"""A conflict's decision: resolvers are asked in order until one decides (S4-047, S4-051, S4-056).

A resolver that chooses is an order over the two sites' rows, not code (rule 4). It says the same whichever
of the two links asks (F16, T03). It leaves to the next resolver the sides that it cannot tell apart. Every chain
ends in `latest_timestamp`, which tells any two versions apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from concord.values.sortable import sortable
from concord.versions.conflict import Order, Winner
from concord.versions.row_version import RowVersion, Vector

Priorities = Mapping[str, int]

#: A row by canonical column, each value as its exact text; None is NULL.
Row = Mapping[str, str | None]

#: The values that an order compares; the greater wins. None: this side cannot be compared.
Key = tuple[Any, ...] | None

#: Why a resolver left a conflict to the next one.
EQUAL, NO_VALUE = "equal", "no value"


def total_order(priorities: Priorities) -> Order:
    """(derived, changed_at, site priority, site name, incarnation): settles versions that include each other."""

    def order(version: RowVersion) -> tuple[int | str, ...]:
        return (version.derived, version.changed_at, *_rank(version, priorities))

    return order


def _rank(version: RowVersion, priorities: Priorities) -> tuple[int | str, ...]:
    return (priorities.get(version.site, 0), version.site, version.incarnation)


@dataclass(frozen=True, slots=True)
class Base:
    """A row as it was before the local edits that led to a version, and the vector it had."""

    row: Row
    vector: Vector
    agreed: bool = False  #: all sites had this version then, and some may have forgotten it (rule 10)


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a conflict: its version, and of its row the columns that the resolvers asked for."""

    version: RowVersion
    row: Row | None = None  #: None where there is no row, or nobody asked
    base: Base | None = None  #: where the site keeps before-images

    @property
    def live(self) -> Row | None:
        """The row, unless it is deleted."""
        return None if self.version.deleted else self.row


class Opinion(NamedTuple):
    """One resolver's word on a conflict; without a winner it is undecided, and `reason` says why."""

    winner: Winner | None
    reason: str


@runtime_checkable
class Resolver(Protocol):
    """Decides a conflict, or leaves it to the next resolver."""

    @property
    def name(self) -> str:
        """As the configuration and the ledger write it: `maximum(price)`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The canonical columns that it must see of both rows."""

    def opinion(self, source: Contender, target: Contender) -> Opinion: ...


class Ordering(Resolver, Protocol):
    """A resolver that compares the two sides by a key of each: the greater wins, equal ones are undecided."""

    @property
    def because(self) -> str:
        """The reason, where the keys differ."""

    def key(self, side: Contender) -> Key: ...


def compared(ordering: Ordering, source: Contender, target: Contender) -> Opinion:
    """The opinion of an order."""
    ours, theirs = ordering.key(source), ordering.key(target)
    if ours is None or theirs is None:
        return Opinion(None, NO_VALUE)
    if ours == theirs:
        return Opinion(None, EQUAL)
    return Opinion(Winner.SOURCE if ours > theirs else Winner.TARGET, ordering.because)


@dataclass(frozen=True, slots=True)
class LatestTimestamp:
    """The later change; of equal ones that of the site of higher priority, then of the greater name."""

    priorities: Priorities
    name: str = "latest_timestamp"
    columns: tuple[str, ...] = ()
    because: str = "changed_at differs"
    because_tied: str = "tie broken by site priority and name"

    def key(self, side: Contender) -> tuple[Any, ...]:
        version = side.version
        return (version.changed_at, *_rank(version, self.priorities), version.derived)

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        tied = source.version.changed_at == target.version.changed_at
        return compared(self, source, target)._replace(reason=self.because_tied if tied else self.because)


@dataclass(frozen=True, slots=True)
class EarliestTimestamp:
    """The change that was made first."""

    name: str = "earliest_timestamp"
    columns: tuple[str, ...] = ()
    because: str = "changed_at differs"

    def key(self, side: Contender) -> Key:
        return (-side.version.changed_at,)

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        return compared(self, source, target)


@dataclass(frozen=True, slots=True)
class SiteOrder:
    """The change of the higher site, whichever link carries it; sites that nobody configured stand below all."""

    name: str
    because: str
    places: Mapping[str, int]  #: site → how high it stands
    columns: tuple[str, ...] = ()

    @property
    def lowest(self) -> int:
        return min(self.places.values(), default=0) - 1

    def key(self, side: Contender) -> Key:
        return (self.places.get(side.version.site, self.lowest),)

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        return compared(self, source, target)


@dataclass(frozen=True, slots=True)
class Presence:
    """The delete before the row, or the row before the delete."""

    name: str
    deleted: bool  #: what wins
    columns: tuple[str, ...] = ()
    because: str = "one side deleted the row"

    def key(self, side: Contender) -> Key:
        return (side.version.deleted == self.deleted,)

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        return compared(self, source, target)


@dataclass(frozen=True, slots=True)
class Extreme:
    """The row with the greater, or the smaller, value of a column (S4-058); a deleted row and NULL have none."""

    column: str
    greatest: bool

    @property
    def name(self) -> str:
        return f"{'maximum' if self.greatest else 'minimum'}({self.column})"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def because(self) -> str:
        return f"the {'greater' if self.greatest else 'smaller'} {self.column}"

    def key(self, side: Contender) -> Key:
        if side.row is None or side.version.deleted:
            return None
        return sortable(side.row.get(self.column))

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        # The smaller value wins where the two sides have changed places.
        return compared(self, *((source, target) if self.greatest else (target, source)))


@dataclass(frozen=True, slots=True)
class PublisherRules:
    """The row that stands at the publisher, whoever changed it there (S4-044, S4-060 to S4-063).

    An order over changes could not say that: of two subscribers' changes the one that the publisher took first holds.
    Both links of a pair have the same two ends, so they decide alike.
    """

    nearer: Winner | None  #: the end that is nearer to the source; None where neither is
    name: str = "publisher_rules"
    columns: tuple[str, ...] = ()
    because: str = "the publisher's row"
    because_deleted: str = "the subscriber's change is ignored"
    undecided: str = "neither end is the publisher"

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        if self.nearer is None:
            return Opinion(None, self.undecided)
        deleted = source.version.deleted or target.version.deleted
        return Opinion(self.nearer, self.because_deleted if deleted else self.because)


@dataclass(frozen=True, slots=True)
class Hold:
    """Nobody wins: both rows stay as they are until a person decides."""

    name: str = "hold"
    columns: tuple[str, ...] = ()
    because: str = "waits for a person"

    def opinion(self, source: Contender, target: Contender) -> Opinion:
        return Opinion(Winner.HELD, self.because)


def passed(name: str, reason: str) -> str:
    """`maximum(price): equal`, in front of the reason of the resolver that decided."""
    return f"{name}: {reason}"
