"""The columns of one table in canonical form, as one site has them; and how two sites differ (F86)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CanonicalColumn:
    """One canonical column at one site."""

    type: str  #: for people, as the site spells it
    descriptor: str | None  #: the same text at two sites means the same values; None fits any type
    generated: bool = False  #: computed by the database, never sent
    added: bool = False  #: since the site was provisioned
    default: str | None = None  #: what a row got that was there before, and gets that does not say
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
            yield f"{table}: column {name} is {left.type} at {first.site} and {right.type} at {second.site}"
        elif (left.added or right.added) and left.default != right.default:
            yield (
                f"{table}: column {name} was added with the default {left.default or 'NULL'} at {first.site} and"
                f" {right.default or 'NULL'} at {second.site}: rows that nobody edits would differ for ever;"
                " add it alike at both sites"
            )
    if first.key != second.key:
        yield f"{table}: the key differs between {first.site} and {second.site}"


def _alike(one: CanonicalColumn, other: CanonicalColumn) -> bool:
    if one.generated != other.generated:
        return False
    if one.descriptor is None or other.descriptor is None:
        return one.mappable and other.mappable
    return one.descriptor == other.descriptor
