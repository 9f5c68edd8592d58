"""The resolvers that a configuration may name, and how each is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from concord.rules.merging import Additive, Average, Custom, Link, MergeColumns
from concord.rules.resolver import (
    EarliestTimestamp,
    Extreme,
    Hold,
    LatestTimestamp,
    Presence,
    Priorities,
    PublisherRules,
    Resolver,
    SiteOrder,
)
from concord.values.text_form import TextForm
from concord.versions.conflict import ConflictType, Winner

#: The end of every chain.
LAST = "latest_timestamp"


#: One conflict, named from either of its two links: both are decided alike.
MIRRORED = {
    ConflictType.UPDATE_DELETE: ConflictType.DELETE_UPDATE,
    ConflictType.DELETE_UPDATE: ConflictType.UPDATE_DELETE,
}


@dataclass(frozen=True, slots=True)
class Given:
    """A resolver's needs besides its name."""

    argument: str
    places: Mapping[str, int]
    priorities: Priorities
    forms: Mapping[str, TextForm]  #: of the columns that hold numbers, text and the like
    nearer: Winner | None = None  #: the end of the link that is nearer to the source, where they are known

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_of(self.argument)


@dataclass(frozen=True, slots=True)
class Kind:
    """A resolver as the configuration names it, and how it is made."""

    make: Callable[[Given], Link]
    takes_column: bool = False
    takes_more: bool = False  #: one column or several
    takes_function: bool = False
    merges: bool = False  #: may make a new row
    three_way: bool = False  #: needs the version that both sites' versions come from
    by_source: bool = False  #: asks which of two sites is nearer to the synchronizations' source
    one_publisher: bool = False  #: and for one that is the source of all of them
    types: Collection[ConflictType] = frozenset(ConflictType)  #: undecided in all others
    chooses: bool = True  #: one of the two rows, by an order
    reinitializes: bool = False  #: and asks to bring the target's copy back to the source's (S3-21)


def _nearer(
    name: str, because: str, sign: int, types: Collection[ConflictType] = frozenset(ConflictType)
) -> Kind:
    def make(given: Given) -> Resolver:
        return SiteOrder(name, because, {site: sign * place for site, place in given.places.items()})

    return Kind(make, by_source=True, types=types)


_SOURCE, _TARGET = "the source's change", "the target's change"


KINDS: Mapping[str, Kind] = {
    "latest_timestamp": Kind(lambda given: LatestTimestamp(given.priorities)),
    "earliest_timestamp": Kind(lambda _: EarliestTimestamp()),
    "source_wins": _nearer("source_wins", _SOURCE, 1),
    "target_wins": _nearer("target_wins", _TARGET, -1),
    "publisher_wins": _nearer("publisher_wins", _SOURCE, 1),
    "publisher_wins_and_reinitialize": replace(
        _nearer("publisher_wins_and_reinitialize", _SOURCE, 1), reinitializes=True
    ),
    "publisher_rules": Kind(lambda given: PublisherRules(given.nearer), by_source=True, one_publisher=True),
    "subscriber_wins": _nearer("subscriber_wins", _TARGET, -1),
    "site_priority": Kind(
        lambda given: SiteOrder("site_priority", "site priority differs", given.priorities)
    ),
    "delete_wins": Kind(lambda _: Presence("delete_wins", deleted=True)),
    "update_wins": Kind(lambda _: Presence("update_wins", deleted=False)),
    "maximum": Kind(lambda given: Extreme(given.argument, greatest=True), takes_column=True),
    "minimum": Kind(lambda given: Extreme(given.argument, greatest=False), takes_column=True),
    # The publisher ignores what a subscriber did to a row that one of them has deleted (S4-055, S4-062, S4-063).
    "ignore": _nearer("ignore", "the target's change is ignored", 1, frozenset(MIRRORED)),
    "average": Kind(
        lambda given: Average(given.argument, given.forms.get(given.argument)),
        takes_column=True,
        merges=True,
        chooses=False,
    ),
    "additive": Kind(
        lambda given: Additive(given.columns, given.forms),
        takes_column=True,
        takes_more=True,
        merges=True,
        three_way=True,
        chooses=False,
    ),
    "merge_columns": Kind(lambda _: MergeColumns(), merges=True, three_way=True, chooses=False),
    "custom": Kind(lambda given: Custom.of(given.argument), takes_function=True, merges=True, chooses=False),
    "hold": Kind(lambda _: Hold(), chooses=False),
}


#: Resolvers whose decisions ask for a re-initialization; who cannot ask goes by the other name (`_without_asking`).
REINITIALIZING = tuple(name for name, kind in KINDS.items() if kind.reinitializes)


def named(resolver: str) -> tuple[str, str]:
    """`maximum(price)` as `maximum` and `price`; the second is empty where there is none."""
    name, bracket, argument = resolver.partition("(")
    return name, argument[:-1] if bracket else ""


def columns_of(argument: str) -> tuple[str, ...]:
    """`a, b` as `a` and `b`."""
    return tuple(column.strip() for column in argument.split(","))
