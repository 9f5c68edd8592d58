"""Two sites' answers laid side by side: which keys differ, how, and whether a link will still carry them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from concord.databases.contract.compared_site import HeldRow
from concord.jobs.comparison import Kind
from concord.rules.resolver import total_order
from concord.versions.conflict import Outcome, classify
from concord.versions.row_version import ABSENT, RowVersion, vector_from_json

Pair = tuple[HeldRow | None, HeldRow | None]


class Differing(NamedTuple):
    """A key that is not the same at both sites."""

    key: str
    kind: Kind
    in_flight: bool
    at_source: bool  #: the site has a row
    at_target: bool


def differing(
    source: Iterable[HeldRow], target: Iterable[HeldRow], priorities: Mapping[str, int], *, filtered: bool
) -> Iterator[Differing]:
    """Both are in the order of place and key. Of a `filtered` table a row that is in scope nowhere is nobody's business
    (rule 9)."""
    for ours, theirs in _paired(source, target):
        if ours is not None and theirs is not None and (ours.same == theirs.same or _forgotten(ours, theirs)):
            continue
        found = _judged(ours, theirs, priorities)
        if found.at_source or found.at_target or not filtered:
            yield found


def _forgotten(ours: HeldRow, theirs: HeldRow) -> bool:
    """Both hold the same row, and one of them has forgotten its version."""
    return _image(ours) == _image(theirs) and (
        (ours.settled and not theirs.origin) or (theirs.settled and not ours.origin)
    )


def _paired(source: Iterable[HeldRow], target: Iterable[HeldRow]) -> Iterator[Pair]:
    """By key; None where a site holds nothing. One row of each is in memory."""
    ours, theirs = iter(source), iter(target)
    here, there = next(ours, None), next(theirs, None)
    while here is not None or there is not None:
        if there is None or (here is not None and here[:2] < there[:2]):
            yield here, None
            here = next(ours, None)
        elif here is None or there[:2] < here[:2]:
            yield None, there
            there = next(theirs, None)
        else:
            yield here, there
            here, there = next(ours, None), next(theirs, None)


def _judged(ours: HeldRow | None, theirs: HeldRow | None, priorities: Mapping[str, int]) -> Differing:
    either = ours or theirs
    assert either is not None, "nothing is no pair"
    return Differing(
        either.key,
        _kind(ours, theirs),
        _pending(ours, theirs, priorities) or _pending(theirs, ours, priorities),
        _has_row(ours),
        _has_row(theirs),
    )


def _has_row(held: HeldRow | None) -> bool:
    return held is not None and held.x1 is not None


def _kind(ours: HeldRow | None, theirs: HeldRow | None) -> Kind:
    if _image(ours) == _image(theirs):
        return Kind.VERSION
    if not _has_row(theirs):
        return Kind.ONLY_SOURCE
    return Kind.CONTENT if _has_row(ours) else Kind.ONLY_TARGET


def _image(held: HeldRow | None) -> tuple[int | None, int | None]:
    return (None, None) if held is None else (held.x1, held.x2)


def _pending(here: HeldRow | None, there: HeldRow | None, priorities: Mapping[str, int]) -> bool:
    """A link will still carry the version of `here`: it arrived after the position, and the other would take it."""
    if here is None or not here.arrived:
        return False
    outcome = classify(_version(here), _version(there), total_order(priorities), row_exists=False)
    return outcome in (Outcome.APPLY, Outcome.CONFLICTED)


def _version(held: HeldRow | None) -> RowVersion:
    if held is None or not held.origin:
        return ABSENT
    assert held.changed_at is not None, "a version has a time"
    assert held.derived is not None, "and says how it was derived"
    vector = vector_from_json(held.vector or "{}")
    return RowVersion(held.origin, held.changed_at, held.derived, vector)
