"""The columns of one table in canonical form, as one site has them; and how two sites differ (F86)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

#: In a descriptor an enumeration is its labels in order, as PostgreSQL quotes literals.
_ENUM = re.compile(r"enum\(((?:E?'(?:[^']|'')*',?)*)\)")
_LABEL = re.compile(r"E?'(?:[^']|'')*'")


@dataclass(frozen=True, slots=True)
class CanonicalColumn:
    """One canonical column at one site."""

    type: str  #: for people, as the site spells it
    descriptor: str | None  #: the same text at two sites means the same values; None fits any type
    generated: bool = False  #: computed by the database, never sent
    added: bool = False  #: since the site was provisioned
    default: str | None = None  #: what a row got that was there before, and gets that does not say
    not_null: bool | None = None  #: None where it is made of others
    mappable: bool = True  #: its values can be judged by their texts, so that another site may map them


@dataclass(frozen=True, slots=True)
class Structure:
    """One table at one site."""

    site: str
    columns: Mapping[str, CanonicalColumn]
    key: frozenset[str]


def differences(table: str, first: Structure, second: Structure) -> Iterator[str]:
    """How one table differs between two sites, column by column; nothing where rows of one fit into the other."""
    ours, theirs = first.columns, second.columns
    for name in sorted(set(ours) ^ set(theirs)):
        present, absent = (first, second) if name in ours else (second, first)
        yield f"{table}: column {name} exists at {present.site} but not at {absent.site}"
    for name in sorted(set(ours) & set(theirs)):
        left, right = ours[name], theirs[name]
        if not _alike(left, right):
            yield f"{table}: column {name} {_apart(left, first.site, right, second.site)}"
        elif (left.added or right.added) and left.default != right.default:
            yield (
                f"{table}: column {name} was added with the default {left.default or 'NULL'} at {first.site} and"
                f" {right.default or 'NULL'} at {second.site}: rows that nobody edits would differ for ever;"
                " add it alike at both sites"
            )
    if first.key != second.key:
        yield f"{table}: the key differs between {first.site} and {second.site}"


def nullable_at_one(table: str, first: Structure, second: Structure) -> Iterator[str]:
    """The columns that may be NULL at one of two sites alone, each one line."""
    ours, theirs = first.columns, second.columns
    for name in sorted(set(ours) & set(theirs)):
        if {ours[name].not_null, theirs[name].not_null} == {True, False}:
            strict, other = (first, second) if ours[name].not_null else (second, first)
            yield (
                f"{table}: column {name} is NOT NULL at {strict.site} and may be NULL at {other.site}: a row of"
                f" {other.site} without it waits at {strict.site}"
            )


def _alike(one: CanonicalColumn, other: CanonicalColumn) -> bool:
    if one.generated != other.generated:
        return False
    if one.descriptor is None or other.descriptor is None:
        return one.mappable and other.mappable
    return one.descriptor == other.descriptor


def _apart(one: CanonicalColumn, at_one: str, other: CanonicalColumn, at_other: str) -> str:
    """How a column differs between two sites: types that are spelled alike may be made of different things."""
    if one.generated != other.generated:
        generated, given = (at_one, at_other) if one.generated else (at_other, at_one)
        return f"is generated at {generated} and not at {given}"
    if one.type != other.type:
        return f"is {one.type} at {at_one} and {other.type} at {at_other}"
    if labels := differing_labels(one.descriptor or "", at_one, other.descriptor or "", at_other):
        return f"is {one.type} at both, with other labels: {labels}; give the type the same labels in the same order"
    return f"is {one.type} at both, and that is {one.descriptor} at {at_one} and {other.descriptor} at {at_other}"


def differing_labels(one: str, at_one: str, other: str, at_other: str) -> str | None:
    """Which labels of an enumeration only one of two descriptors has; None where labels are not what differs."""
    ours, theirs = _labels(one), _labels(other)
    if ours == theirs or not (ours and theirs):
        return None
    alone = {at_one: ours, at_other: theirs}
    said = [
        f"only {site} has {', '.join(only)}"
        for site, labels in alone.items()
        if (only := [label for label in labels if label not in ours or label not in theirs])
    ]
    return "; ".join(said or [f"{', '.join(labels)} at {site}" for site, labels in alone.items()])


def _labels(descriptor: str) -> list[str]:
    return [label for labels in _ENUM.findall(descriptor) for label in _LABEL.findall(labels)]
