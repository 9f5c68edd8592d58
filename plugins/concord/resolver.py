"""Who wins a conflict: a resolver is an order over row versions, not code (style, rule 4).

Every order ends in site priority, site name, incarnation and derivation, so that no two versions tie and
both sites decide alike whatever the link's direction (F16, T03).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from concord.conflict import Decision, Order
from concord.row_version import RowVersion

Priorities = Mapping[str, int]


def total_order(priorities: Priorities) -> Order:
    """(derived, changed_at, site priority, site name, incarnation): settles versions that include each other."""

    def order(version: RowVersion) -> tuple[int | str, ...]:
        return (version.derived, version.changed_at, *_rank(version, priorities))

    return order


def _rank(version: RowVersion, priorities: Priorities) -> tuple[int | str, ...]:
    return (priorities.get(version.site, 0), version.site, version.incarnation)


@dataclass(frozen=True, slots=True)
class Resolver:
    """A named order: the fields of a version compared first, before the rank of its site."""

    name: str
    fields: tuple[str, ...]

    def order(self, priorities: Priorities) -> Order:
        """The sort key of a version; the greatest wins."""

        def key(version: RowVersion) -> tuple[int | str, ...]:
            compared = tuple(int(getattr(version, field)) for field in self.fields)
            return (*compared, *_rank(version, priorities), version.derived)

        return key

    def decide(self, source: RowVersion, target: RowVersion, priorities: Priorities) -> Decision:
        order = self.order(priorities)
        wins = order(source) > order(target)
        return Decision(wins, self.name, self.reason(source, target))

    def reason(self, source: RowVersion, target: RowVersion) -> str:
        """Why, in the words of the log: which field made the difference."""
        for field in self.fields:
            if getattr(source, field) != getattr(target, field):
                return f"{field} differs"
        return "tie broken by site priority and name"


LATEST_TIMESTAMP = Resolver("latest_timestamp", ("changed_at",))

RESOLVERS: Mapping[str, Resolver] = {resolver.name: resolver for resolver in (LATEST_TIMESTAMP,)}


def chain(names: Sequence[str]) -> tuple[Resolver, ...]:
    """The resolvers asked in order until one decides. Raises KeyError for a name nobody registered."""
    return tuple(RESOLVERS[name] for name in names)
