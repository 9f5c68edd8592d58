"""The conflict policy of a table: which resolvers are asked, in which order, for which type of conflict (S4-047)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field

from concord.rules.kinds import KINDS, LAST, MIRRORED, Given, Kind, named
from concord.rules.merging import Additive, Custom, Link, decide
from concord.rules.resolver import (
    Contender,
    Priorities,
    Resolver,
    passed,
)
from concord.values.text_form import TextForm
from concord.versions.conflict import BETWEEN_VERSIONS, ConflictType, Decision, Winner, conflict_type

#: Never undecided: what follows them in a chain is never asked.
ENDS = (LAST, "hold")


_ONLY_WINS = {"publisher_wins_and_reinitialize": "publisher_wins"}


def _without_hold(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name != "hold") or (LAST,)


def _without_asking(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_ONLY_WINS.get(name, name) for name in names)


def _without_merges(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not KINDS[named(name)[0]].merges) or (LAST,)


def _may_add_up(resolver: str) -> bool:
    name, argument = named(resolver)
    return name == "additive" or (KINDS[name].takes_function and Custom.of(argument).adding)


class Policy(BaseModel):
    """The chains of one table, as every synchronization that shares it has them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    resolvers: tuple[str, ...] = (LAST,)
    by_type: Mapping[ConflictType, tuple[str, ...]] = Field(default_factory=dict)
    places: Mapping[str, int] = Field(default_factory=dict)  #: site → the greater, the nearer to the source

    def names(self, kind: ConflictType) -> tuple[str, ...]:
        """The chain of a type, to its end. Two deletes agree, so that there is nothing to wait for or to bring
        back."""
        own = self.by_type.get(kind) or self.by_type.get(MIRRORED.get(kind, kind)) or self.resolvers
        if kind is ConflictType.DELETE_DELETE:
            own = _without_asking(_without_hold(own))
        return own if own[-1] == LAST else (*own, LAST)

    def bound(
        self,
        priorities: Priorities,
        forms: Mapping[str, TextForm] | None = None,
        between: tuple[str, str] | None = None,
    ) -> Chains:
        """The chains, ready to decide; `forms` of the columns at the site that decides, `between` which sites.

        Raises KeyError for a resolver that nobody registered.
        """
        return Chains(self, priorities, forms or {}, nearer=self._nearer(*between) if between else None)

    def _nearer(self, source: str, target: str) -> Winner | None:
        """Which end of a link is nearer to the source of the synchronizations, if one of them is."""
        if source not in self.places or target not in self.places:
            return None
        difference = self.places[source] - self.places[target]
        return None if not difference else Winner.SOURCE if difference > 0 else Winner.TARGET

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of every resolver that some chain names."""
        return tuple(KINDS[name] for name, _ in self.named)

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """Every resolver that some chain names, with its argument, each once."""
        chains = (self.resolvers, *self.by_type.values())
        return tuple(sorted({named(each) for chain in chains for each in chain}))

    @property
    def merges(self) -> bool:
        """May a conflict end in a new row? Then the whole rows of both sides must be seen."""
        return any(kind.merges for kind in self.kinds)

    @property
    def keeps_base(self) -> bool:
        """Must a site keep what a row was before its last edits?"""
        return self.shows_common or any(kind.three_way for kind in self.kinds)

    @property
    def shows_common(self) -> bool:
        """Is somebody else's function shown it?"""
        return any(
            Custom.of(argument).three_way for name, argument in self.named if KINDS[name].takes_function
        )

    @property
    def adds_up(self) -> bool:
        """May a resolver add up what both sites did, also where they hold the same row?"""
        return bool(self.adding)

    @property
    def adding(self) -> frozenset[ConflictType]:
        """The types of conflict in which one may; of two rows that are deleted there is nothing to add up."""
        live = BETWEEN_VERSIONS - {ConflictType.DELETE_DELETE}
        return frozenset(kind for kind in live if any(map(_may_add_up, self.names(kind))))

    @property
    def asks(self) -> bool:
        """Is somebody else's function asked?"""
        return any(kind.takes_function for kind in self.kinds)

    @property
    def reinitializes(self) -> bool:
        """May a conflict ask to bring the target's copy back to the source's?"""
        return any(kind.reinitializes for kind in self.kinds)

    @property
    def columns(self) -> tuple[str, ...]:
        """The canonical columns that some resolver must see of both rows."""
        return self.bound({}).columns if any(kind.takes_column for kind in self.kinds) else ()


@dataclass(frozen=True)
class Chains:
    """A policy with the sites' priorities: decides."""

    policy: Policy
    priorities: Priorities
    forms: Mapping[str, TextForm]
    asks: bool = True  #: can somebody else's function be asked?
    nearer: Winner | None = None  #: the end of the link that is nearer to the source

    @property
    def publisher(self) -> str | None:
        """The end of the link at which the publisher's rows stand, as a function is told."""
        return {Winner.SOURCE: "source", Winner.TARGET: "target"}.get(self.nearer) if self.nearer else None

    @cached_property
    def by_type(self) -> Mapping[ConflictType, Sequence[Link]]:
        return {kind: tuple(self._made(kind)) for kind in ConflictType}

    def _made(self, kind: ConflictType) -> Iterator[Link]:
        for each in self.policy.names(kind):
            name, argument = named(each)
            if kind in KINDS[name].types:
                given = Given(argument, self.policy.places, self.priorities, self.forms, self.nearer)
                yield KINDS[name].make(given)

    @cached_property
    def unasked(self) -> Chains:
        """The same where no function can be asked: the rest of its chain decides, and the reason says so."""
        return replace(self, asks=False)

    @cached_property
    def after_custom(self) -> Chains:
        """The resolvers that are asked where somebody else's function leaves a conflict undecided."""

        def rest(names: tuple[str, ...]) -> tuple[str, ...]:
            places = [place for place, name in enumerate(names) if KINDS[named(name)[0]].takes_function]
            return names[places[0] + 1 :] or (LAST,) if places else names

        return self._with(rest)

    @property
    def columns(self) -> tuple[str, ...]:
        chains = self.by_type.values()
        choosing = [each for chain in chains for each in chain if isinstance(each, Resolver)]
        return tuple(sorted({name for each in choosing for name in each.columns}))

    def decide(self, source: Contender, target: Contender) -> Decision:
        """The winner, the resolver that decided, and why.

        A row that nobody has a version of gives way to every version: there is nothing to announce it by (rule 8).
        """
        chain = self.by_type[conflict_type(source.version, target.version)]
        absent = source.version.is_absent or target.version.is_absent
        decision = decide(chain[-1:] if absent else chain, source, target)
        if self.asks or decision.winner is not Winner.AGAIN:
            return decision
        rest = self.after_custom.decide(source, target)
        return replace(rest, reason=f"{passed(decision.resolver, 'not asked')}; {rest.reason}")

    def same_thing(self, source: Contender, target: Contender, *, alike: bool) -> bool:
        """Have both sites done the very same thing? `alike`: both deleted the row, or every column of it is the same.

        Two sites that add 5 to one number hold the same row, and have not done the same thing. Where a resolver
        adds up both additions, and is reached, it decides as it does of rows that differ.
        """
        return alike and not self._adds_up(source, target)

    def _adds_up(self, source: Contender, target: Contender) -> bool:
        for each in self.by_type[conflict_type(source.version, target.version)]:
            if isinstance(each, Additive | Custom):
                if each.adds_up(source, target):
                    return True
            elif isinstance(each, Resolver) and each.opinion(source, target).winner is not None:
                return False
        return False

    def stays(self, source: Contender, target: Contender) -> Winner:
        """Whose version stays where both did the same thing: the one that would have won. Nobody is asked or waited
        for, and no row is made, since nothing is lost."""
        return self.without_hold().decide(source, target).winner

    def without_hold(self) -> Chains:
        """The same for those that cannot wait, make no rows, and bring copies back themselves: an initialization, a
        repair."""

        def deciding(names: tuple[str, ...]) -> tuple[str, ...]:
            return _without_asking(_without_merges(_without_hold(names)))

        return self._with(deciding)

    def _with(self, changed: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Chains:
        policy = self.policy.model_copy(
            update={
                "resolvers": changed(self.policy.resolvers),
                "by_type": {kind: changed(names) for kind, names in self.policy.by_type.items()},
            }
        )
        return replace(self, policy=policy)
