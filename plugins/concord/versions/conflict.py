"""Is it a conflict, and how is it remembered? Causality decides, never a clock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from concord.versions.row_version import RowVersion

#: Orders concurrent versions; the greater one wins. Total: no two versions share a key.
Order = Callable[[RowVersion], tuple[int | str, ...]]


class Outcome(StrEnum):
    """The outcome of an incoming version that meets the present one."""

    APPLY = "apply"
    CONVERGED = "converged"
    SUPERSEDED = "superseded"
    CONFLICTED = "conflicted"


class ConflictType(StrEnum):
    """Named from the source's side: what the source did, then what the target did."""

    INSERT_INSERT = "insert_insert"
    UPDATE_UPDATE = "update_update"
    UPDATE_DELETE = "update_delete"
    DELETE_UPDATE = "delete_update"
    DELETE_DELETE = "delete_delete"
    UNIQUENESS = "uniqueness"  #: the winner is another row, which has the value that the loser had as well
    FOREIGN_KEY = (
        "foreign_key"  #: the winner is a row of another table, by a key that the loser stands in the way of
    )
    IDENTITY_COLLISION = "identity_collision"  #: insert_insert of a key that the sites generate themselves
    RESTORED = "restored"  #: no conflict of versions: a backfill put back what had gone without one


#: Of two versions of one row, which a policy decides; the others are about other rows, or about none.
BETWEEN_VERSIONS = frozenset(ConflictType) - {
    ConflictType.UNIQUENESS,
    ConflictType.FOREIGN_KEY,
    ConflictType.RESTORED,
}


#: The act on a row, as a conflict type says it of either side.
_DONE = {"insert": "inserted", "update": "updated", "delete": "deleted"}
_OTHERWISE = {
    ConflictType.UNIQUENESS: "one unique value at both",
    ConflictType.FOREIGN_KEY: "in the way of a foreign key",
    ConflictType.IDENTITY_COLLISION: "one generated key at both",
    ConflictType.RESTORED: "put back by a backfill",
}


def in_words(kind: ConflictType, source: str, target: str) -> str:
    """For a person who does not think in links: `updated in London, deleted in Cape Town`."""
    if kind in _OTHERWISE:
        return _OTHERWISE[kind]
    here, there = (_DONE[verb] for verb in kind.split("_"))
    return f"{here} at both" if here == there else f"{here} in {source}, {there} in {target}"


def classify(
    incoming: RowVersion,
    present: RowVersion,
    total_order: Order,
    *,
    row_exists: bool,
    same_thing: bool = False,
) -> Outcome:
    """One of four outcomes, by what each version has seen of the other (rules 4 and 8).

    `row_exists` tells whether the target holds a base row. A born row that meets an unshadowed present
    row is insert/insert, although the empty vector is included in every other. An absent version is no news to
    anybody, not even where there is none either.

    `same_thing`: the two sites did the very same thing without knowing of each other (`Chains.same_thing`). Neither
    version loses anything then: they converge, and that one stays which would have won the conflict.
    """
    if incoming.is_absent:
        return Outcome.SUPERSEDED
    if incoming.dot == present.dot:
        return Outcome.CONVERGED
    if present.is_absent and row_exists and incoming.born and not same_thing:
        return Outcome.CONFLICTED
    forward, backward = incoming.includes(present), present.includes(incoming)
    if not (forward or backward):
        return Outcome.CONVERGED if same_thing else Outcome.CONFLICTED
    if forward and backward:
        forward = total_order(incoming) > total_order(present)
    return Outcome.APPLY if forward else Outcome.SUPERSEDED


def conflict_type(incoming: RowVersion, present: RowVersion) -> ConflictType:
    """The act that changed the row on either side. Two deletes are the same thing, and no conflict, unless the
    application has only marked both rows as deleted, and they differ.

    A key was inserted twice only if neither side had heard of it from the other, or both from a third one. `born`
    stays with a row for ever, and a key that both sides know they have updated since.
    """
    if incoming.deleted and present.deleted:
        return ConflictType.DELETE_DELETE
    if incoming.deleted and not present.deleted:
        return ConflictType.DELETE_UPDATE
    if present.deleted and not incoming.deleted:
        return ConflictType.UPDATE_DELETE
    both_born = incoming.born and (present.born or present.is_absent)
    inserted = both_born and not incoming.shares_history_with(present)
    return ConflictType.INSERT_INSERT if inserted else ConflictType.UPDATE_UPDATE


def conflict_id(table: str, key: Sequence[str], one: RowVersion, other: RowVersion) -> str:
    """SHA-256 over table, key and the two dots in order: the same on every path that finds it (F26).

    Vectors do not enter. Each text is preceded by its length, so that no two lists read the same; every
    dialect computes the same text in SQL.
    """
    return _hashed([table, *key, *_dots(one, other)])


@dataclass(frozen=True, slots=True)
class LostBy:
    """The ground on which a row gave way: the type of the conflict, and the constraint as every site knows it.
    Where a row of the same table has the value, also the key of that row."""

    kind: ConflictType
    rule: str
    against: Sequence[str] = ()


def loss_id(table: str, key: Sequence[str], one: RowVersion, other: RowVersion, by: LostBy) -> str:
    """The same of a row that gave way to another row. Rows that one statement wrote share a version, so the rule
    and the winner tell two losses of one row apart."""
    return _hashed([table, *key, by.kind, *_dots(one, other), by.rule, *by.against])


def _dots(one: RowVersion, other: RowVersion) -> list[str]:
    return ["/".join(map(str, dot)) for dot in sorted([one.dot, other.dot])]


def _hashed(parts: Sequence[str]) -> str:
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


class Winner(StrEnum):
    """Whose row holds, from the link's side; the verdict that staging carries."""

    SOURCE = "source_wins"
    TARGET = "target_wins"
    MERGED = "merged"  #: neither's: a new row is made of both
    AGAIN = "again"  #: not known here: the resolver is asked outside of the target's transaction alone
    HELD = "held"  #: nobody's: both rows stay as they are until a person decides

    @property
    def other(self) -> Winner:
        """The same seen from the related link."""
        return {Winner.SOURCE: Winner.TARGET, Winner.TARGET: Winner.SOURCE}.get(self, self)


@dataclass(frozen=True, slots=True)
class Decision:
    """The winner of a conflict, its resolver, and why, in words for the log."""

    winner: Winner
    resolver: str
    reason: str
    row: Mapping[str, str | None] | None = None  #: the new one of a merge, by canonical column

    @property
    def source_wins(self) -> bool:
        return self.winner is Winner.SOURCE
