"""Hashes that are alike at two sites: of keys, to find the bucket of a row, and of whole rows."""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.contract.compared_site import Hashing
from concord.databases.postgresql.rows.canonical import canonical_texts
from concord.databases.postgresql.rows.row_keys import formless
from concord.databases.postgresql.rows.shape import Shape

_WHOLE_NUMBERS = frozenset(["int2", "int4", "int8"])


def bucket(shape: Shape, row: str, hashing: Hashing) -> str:
    """The bucket of a row, by its key."""
    return f"({place(shape, row, hashing)} & {hashing.buckets - 1})"


def place(shape: Shape, row: str, hashing: Hashing) -> str:
    """The hash of the key, the same at both sites; its last bits are the bucket, whose number is a power of two.

    Most keys are one number or one text, which need no record: that halves what it takes to look for some buckets.
    """
    values = key_values(shape, row, hashing)
    if len(values) == 1 and not hashing.as_they_are.intersection(shape.key_names):
        return f"hashtextextended({values[0]}, 2)"
    if len(values) == 1 and shape.key[0].type.root in _WHOLE_NUMBERS:
        return f"hashint8extended({values[0]}, 2)"
    return f"hash_record_extended(ROW({', '.join(values)}), 2)"


def key_values(shape: Shape, row: str, hashing: Hashing) -> list[str]:
    """The same to be hashed."""
    values = {
        column.name: shape.key_in(row, column)
        if column.name in hashing.as_they_are
        else formless(column, shape.key_in(row, column))
        for column in shape.key
    }
    return _hashable(shape, values, hashing)


def row_image(shape: Shape, hashing: Hashing) -> str:
    """A record is hashed column by column, so that no two rows read the same."""
    values = {
        column.name: f"t.{column.sql}"
        if column.name in hashing.as_they_are
        else column.type.exact(f"t.{column.sql}")
        for column in shape.columns
    }
    return f"ROW({', '.join(_hashable(shape, values, hashing))})"


def _hashable(shape: Shape, values: Mapping[str, str], hashing: Hashing) -> list[str]:
    """By canonical name. Texts are hashed by their bytes, whatever their collation holds equal."""
    return [
        value if name in hashing.as_they_are else f'({value}) COLLATE "C"'
        for name, value in sorted(canonical_texts(shape.manipulation, values).items())
    ]


def as_they_are(shape: Shape, other: Shape) -> frozenset[str]:
    """The columns that need no text to be hashed: equal values are the same text, and of one type at both sites."""
    if shape.manipulation or other.manipulation or shape.marks or other.marks:
        return frozenset()
    alike = {(column.name, column.type.descriptor) for column in other.columns}
    return frozenset(
        column.name
        for column in shape.columns
        if column.type.has_one_image
        and column.type.built_in
        and (column.name, column.type.descriptor) in alike
    )
