"""How is a key repaired that differs? The conflict rule decides wherever versions can (rules 2, 4, 5).

Where they cannot, both sites hold the same version of different rows, and there is no causal answer. The causes are
silent damage, a write past the triggers, a site that was never equal.

Then a row stays before none. Of two rows the one stays at
the site of higher priority, then greater name, or the one a person prefers. It becomes a new version, so that every
site of the topology follows; what it replaces stands in the conflict log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from concord.rules.policy import Chains
from concord.rules.resolver import Contender, total_order
from concord.versions.conflict import Outcome, classify
from concord.versions.row_version import RowVersion, unite

#: The conflict log's resolver of a repair.
REPAIR = "repair"

#: The stamp of a repaired row that nobody ever changed: later than none (0), earlier than every edit.
BEFORE_EVERY_EDIT = 1


class Deed(StrEnum):
    """A repair's treatment of a key, at the site that has to give way."""

    SEND = "send"  #: the other site's version includes this one: an ordinary link would have sent it
    RESOLVE = "resolve"  #: a conflict; the table's resolver decides, the loser is logged
    DELETE = "delete"  #: the other site has a tombstone that includes this row's version; the row is logged
    REPLACE = "replace"  #: the other site's row under its own version; this one was never captured: logged
    RESTAMP = "restamp"  #: the same version of different rows: one of them becomes a new version


#: Deeds that need no log entry of the repair's own: the ordinary write logs what loses a conflict.
ORDINARY = (Deed.SEND, Deed.RESOLVE)


@dataclass(frozen=True, slots=True)
class Held:
    """One site's state of a key."""

    site: str
    origin: str  #: the site's present one
    version: RowVersion
    exists: bool
    outside: bool = False  #: a row of the site's own stands there, outside of the row filter
    left: bool = False  #: its version is one of a row outside of the filter, here or elsewhere


@dataclass(frozen=True, slots=True)
class Remedy:
    """Written at the site `loser` from what `winner` has, as `version`."""

    deed: Deed
    winner: str
    loser: str
    reason: str
    version: RowVersion
    against: RowVersion  #: what must still be the present version there
    replaces: bool  #: a row goes, and must be logged
    left: bool = False  #: what is written is that the row has left the filter

    @property
    def sentence(self) -> str:
        """`restamp: london's row to capetown, higher site priority`."""
        return f"{self.deed}: {self.winner} to {self.loser}, {self.reason}"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a pair decides: its chains of resolvers, its priorities, and whom a person prefers, if anybody."""

    chains: Chains
    priorities: Mapping[str, int]
    prefer: Literal["source", "target"] | None = None

    def remedy(self, source: Held, target: Held, *, same_content: bool) -> Remedy | None:
        """None when the two agree. The same for source and target exchanged, but for `prefer`."""
        if source.version.dot != target.version.dot:
            return self._by_version(source, target, same_content=same_content)
        return None if same_content else self._by_site(source, target)

    def _by_version(self, source: Held, target: Held, *, same_content: bool) -> Remedy:
        unlike = target.exists and not same_content
        outcome = classify(source.version, target.version, total_order(self.priorities), row_exists=unlike)
        if outcome is Outcome.CONFLICTED and not target.version.is_absent:
            decision = self.chains.decide(Contender(source.version), Contender(target.version))
            ends = (source, target) if decision.source_wins else (target, source)
            if same_content:
                return _remedy(Deed.SEND, *ends, "both sites did the same thing", ends[0].version)
            return _remedy(Deed.RESOLVE, *ends, f"{decision.resolver}: {decision.reason}", ends[0].version)
        wins = outcome in (Outcome.APPLY, Outcome.CONFLICTED)
        winner, loser = (source, target) if wins else (target, source)
        if loser.exists and not winner.exists:
            reason = (
                "its row has left the filter" if winner.left else "its delete includes this row's version"
            )
            return _remedy(Deed.DELETE, winner, loser, reason, winner.version)
        if loser.exists and loser.version.is_absent and not same_content:
            return _remedy(Deed.REPLACE, winner, loser, "its row was changed, this one never", winner.version)
        return _remedy(Deed.SEND, winner, loser, "its version includes the other", winner.version)

    def _by_site(self, source: Held, target: Held) -> Remedy:
        winner, loser, reason = self._preferred(source, target)
        version = _restamped(winner, loser)
        return _remedy(Deed.RESTAMP, winner, loser, reason, version)

    def _preferred(self, source: Held, target: Held) -> tuple[Held, Held, str]:
        if source.exists != target.exists:
            present, missing = (source, target) if source.exists else (target, source)
            if source.version.deleted and target.version.deleted:
                return missing, present, "both sites know the key as deleted"
            return present, missing, "a row stays before none"
        if self.prefer is not None:
            chosen = (source, target) if self.prefer == "source" else (target, source)
            return *chosen, f"the {self.prefer} is preferred"
        ends = sorted((source, target), key=lambda end: (self.priorities.get(end.site, 0), end.site))
        return ends[1], ends[0], "site priority and name"


def _remedy(deed: Deed, winner: Held, loser: Held, reason: str, version: RowVersion) -> Remedy:
    left = winner.left and not winner.exists
    written = replace(version, deleted=not (winner.exists or left))
    replaces = loser.exists or loser.outside
    return Remedy(deed, winner.site, loser.site, reason, written, loser.version, replaces, left)


def _restamped(winner: Held, loser: Held) -> RowVersion:
    """Rule 5: the row's own origin and stamp, derived + 1, the union of both vectors of that same row.

    A row that was never changed has no origin: it gets its site's, and a stamp that no edit can lose against.
    It counts as born, so that a third site with yet another row of that key logs it before it gives way.
    """
    old = winner.version
    if old.is_absent:
        dot = (BEFORE_EVERY_EDIT, 1)
        return RowVersion(winner.origin, *dot, {winner.origin: dot}, born=True)
    vector = unite(old.vector, loser.version.vector)
    derived = max(old.derived, vector.get(old.origin, (0, 0))[1] if _own(old, vector) else 0) + 1
    return replace(old, derived=derived, vector=unite(vector, {old.origin: (old.changed_at, derived)}))


def _own(version: RowVersion, vector: Mapping[str, tuple[int, int]]) -> bool:
    """Does the vector's entry for the version's origin speak of this very stamp?"""
    return vector.get(version.origin, (0, 0))[0] == version.changed_at
