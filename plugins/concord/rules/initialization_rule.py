"""An initialization's answer to a row that it sees at both sites, or at one (rule 8, F33).

Seen from one direction: is the incoming row written over the present one? The other direction is decided
afterwards, on what the first has written.

A site that is brought back had *sent* every version that arrived there before its last session. The other site has
seen it, whatever it holds now, and even when it remembers nothing of it any more. A version that arrived later is
unsent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from concord.rules.policy import Chains
from concord.rules.resolver import Contender, Row, total_order
from concord.versions.conflict import Outcome, classify
from concord.versions.row_version import ABSENT, RowVersion, unite

#: The conflict log's resolver of a decision that only an initialization takes.
RESOLVER = "initialization"

#: Why, in the words of the log.
NAMED, SEEN, UNVERSIONED = (
    "from names this site",
    "this site had seen that version",
    "the other has no version",
)

#: `changed_at` (µs) of a row that a load announces although nobody has changed it: older than every edit.
EVER = 1


@dataclass(frozen=True, slots=True)
class Side:
    """One key at one site: its version, ABSENT where there is none, and whether there is a row."""

    version: RowVersion
    exists: bool
    unsent: bool = False  #: at a stale site: the other one has not seen this
    row: Row | None = None  #: what the resolvers asked to see of it
    #: Its row is, or was, outside of the row filter: no row as far as the pair is concerned.
    left: bool = False
    agreed: bool = False  #: all sites have agreed to forget the version, and some may have done so (rule 10)


@dataclass(frozen=True, slots=True)
class Way:
    """One direction of an initialization."""

    origin: str  #: of the source
    fresh: bool  #: no common history: an edit and a row without a version are in conflict
    named: bool  #: the source is the site whose rows hold where versions do not decide
    source_stale: bool = False
    target_stale: bool = False
    #: Other synchronizations listen at the target, or it may hold rows of its own under the same keys, outside of
    #: the filter. Every row needs a version.
    announced: bool = False
    private: bool = False  #: announced for its own rows alone: nobody else listens
    forgetful: bool = (
        False  #: the target has forgotten versions of rows: one without any may have been edited
    )
    #: The target's log tells of edits, after they were made: a row that stood there may be gone by now.
    by_log: bool = False
    priorities: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The staged rows: `insert` takes what no link has to tell of, a row without a version, or an agreed version,
    which stays agreed. The others are those of a link."""

    verdict: str
    version: RowVersion | None = None
    resolver: str | None = None
    reason: str | None = None


def decide(incoming: Side, present: Side, way: Way, chains: Chains, *, same: bool) -> Verdict | None:
    """The verdict, or None when there is nothing to write in this direction. `same`: both hold one content."""
    if incoming.left and not present.exists:
        return None
    if incoming.agreed and present.version.is_absent:
        if _stays_agreed(incoming, present, way, same=same):
            return Verdict("insert", incoming.version)
        if not _still_counts(incoming, present, way, same=same):
            incoming = replace(incoming, version=ABSENT)  # told again, it would be what others have forgotten
    if incoming.version.is_absent:
        return _without_version(incoming, present, way, same=same)
    if present.version.is_absent:
        return _over_no_version(incoming, present, way, same=same)
    return _between_versions(incoming, present, way, chains, same=same)


def _stays_agreed(incoming: Side, present: Side, way: Way, *, same: bool) -> bool:
    """May the target know the version as the source does? A third site may not have agreed yet. An edit made there
    remembers who inserted the row, and must not meet it without any version. Nor must an edit made here meet a
    tombstone there that it has not seen (rule 10)."""
    alike = (same and not way.by_log) or not present.exists
    unannounced = not way.announced or (way.private and present.exists)
    return alike and unannounced and not (incoming.left or way.source_stale)


def _still_counts(incoming: Side, present: Side, way: Way, *, same: bool) -> bool:
    """Does the version decide, agreed or not? The target has another row, which only a version can replace. Or
    it may have a row of its own, and tells nobody else."""
    if present.exists:
        return not same and not way.target_stale
    return incoming.exists and way.private


def _without_version(incoming: Side, present: Side, way: Way, *, same: bool) -> Verdict | None:
    has_seen = way.target_stale and not present.unsent
    if not incoming.exists:
        return _forced(incoming, present, way, SEEN) if has_seen and present.exists else None
    if present.exists and same:
        return None
    if not present.version.is_absent:
        return _forced(incoming, present, way, SEEN) if has_seen else None
    if present.exists:
        return _forced(incoming, present, way, NAMED) if way.named else None
    if way.source_stale:
        return None
    return Verdict("apply", ever(way.origin)) if way.announced else Verdict("insert")


def _over_no_version(incoming: Side, present: Side, way: Way, *, same: bool) -> Verdict | None:
    was_seen = way.source_stale and not incoming.unsent
    unknown = way.fresh or (way.forgetful and not was_seen)
    if present.exists and unknown and not (incoming.exists and same):
        return Verdict("source_wins", incoming.version, RESOLVER, UNVERSIONED)
    if was_seen and not (present.exists and incoming.exists and same):
        return None
    return Verdict("apply", incoming.version)


def _between_versions(
    incoming: Side, present: Side, way: Way, chains: Chains, *, same: bool
) -> Verdict | None:
    ours, theirs, priorities = incoming.version, present.version, way.priorities or {}
    if ours.dot == theirs.dot and not same:  # changes were missed at one of the sites
        return _forced(incoming, present, way, NAMED) if way.named else None
    outcome = classify(ours, theirs, total_order(priorities), row_exists=False, same_thing=same)
    if outcome is Outcome.APPLY:
        return Verdict("apply", ours)
    if outcome is not Outcome.CONFLICTED:
        return None if unite(theirs.vector, ours.vector) == theirs.vector else Verdict("unite", ours)
    if way.target_stale and not present.unsent:
        return Verdict("source_wins", ours, RESOLVER, SEEN)
    if way.source_stale and not incoming.unsent:
        return None
    decision = chains.decide(Contender(ours, incoming.row), Contender(theirs, present.row))
    return Verdict(decision.winner.value, ours, decision.resolver, decision.reason)


def ever(origin: str) -> RowVersion:
    """The version of a row that nobody has changed since its site was provisioned: older than every edit of it."""
    return RowVersion(origin, EVER, 0, {origin: (EVER, 0)})


def _forced(incoming: Side, present: Side, way: Way, reason: str) -> Verdict:
    """The incoming state holds although its version does not say so: a version derived from the present one
    (rule 5), which every site then follows."""
    theirs = present.version
    if theirs.is_absent:
        made = ever(way.origin)
    else:
        dot = (theirs.changed_at, theirs.derived + 1)
        made = replace(
            theirs, derived=theirs.derived + 1, vector=unite(theirs.vector, {theirs.origin: dot}), born=False
        )
    deleted = not (incoming.exists or incoming.left)
    return Verdict("source_wins", replace(made, deleted=deleted), RESOLVER, reason)
