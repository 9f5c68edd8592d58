"""Ids of the conflict log, in SQL.

The entries of a run are written by set, so that no id passes through Python.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.versions.conflict import ConflictType

#: Origin, changed_at and derived of one version, each as SQL.
Dot = tuple[str, str, str]


def dot(row: str) -> Dot:
    """The dot of a relation that has a version's fields under this prefix: `v.s_`."""
    return f"{row}origin", f"{row}changed_at", f"{row}derived"


def conflict_id(table: str, key: str, one: Dot, other: Dot) -> str:
    """A second form of `versions.conflict.conflict_id`; `key`: the canonical key, its parts divided by commas."""
    first, second = _in_order(one, other)
    return _hashed(f"ARRAY[{literal(table)}, {key}, {first}, {second}]")


def loss_id(table: str, key: str, one: Dot, other: Dot, by: tuple[ConflictType, str, str]) -> str:
    """A second form of `versions.conflict.loss_id`.

    `table` is SQL, and `key` a JSON array; `by`: the conflict's type, the rule's name, and the other row's key.
    """
    first, second = _in_order(one, other)
    kind, rule, against = by
    return _hashed(
        f"{table} || {_parts(key)} || ARRAY[{literal(kind)}, {first}, {second}, {rule}] || {_parts(against)}"
    )


def _parts(key: str) -> str:
    return f"ARRAY(SELECT jsonb_array_elements_text({key}))"


def _in_order(one: Dot, other: Dot) -> tuple[str, str]:
    """Both dots as text, the lesser first. Python compares texts by code points, as the collation C does."""
    here, there = " || '/' || ".join(one), " || '/' || ".join(other)
    lesser = f"{_ranked(one)} <= {_ranked(other)}"
    return (
        f"CASE WHEN {lesser} THEN {here} ELSE {there} END",
        f"CASE WHEN {lesser} THEN {there} ELSE {here} END",
    )


def _ranked(dot: Dot) -> str:
    origin, changed_at, derived = dot
    return f'({origin} COLLATE "C", {changed_at}, {derived})'


def _hashed(parts: str) -> str:
    """Each text is preceded by its length, as `versions.conflict` does."""
    return (
        "(SELECT encode(sha256(convert_to(string_agg(length(part) || ':' || part, '' ORDER BY place), 'UTF8')), 'hex')"
        f" FROM unnest({parts}) WITH ORDINALITY u (part, place))"
    )
