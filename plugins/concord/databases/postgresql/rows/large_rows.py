"""Rows that are too large for an image (`facts.row_image`), by the name that a statement gives them."""

from __future__ import annotations

from concord.databases.postgresql.facts import row_image
from concord.databases.postgresql.rows.shape import Shape


def octets(shape: Shape, row: str) -> str:
    """The bytes of the row's texts; never NULL."""
    return row_image.size(shape.columns, row, staged=row == "s")


def is_large(shape: Shape, row: str) -> str:
    """Condition: the row has no image. Never NULL."""
    return f"({octets(shape, row)} > {row_image.LARGEST})"


def image_or_key(shape: Shape, row: str) -> str:
    """The image; of a row that is too large, of its key alone."""
    key = row_image.image(shape.key, row, staged=row == "s")
    return f"CASE WHEN {is_large(shape, row)} THEN {key} ELSE {shape.image(row)} END"


def image_or_nothing(shape: Shape, row: str) -> str:
    """The image; NULL of a row that is too large."""
    return f"CASE WHEN NOT {is_large(shape, row)} THEN {shape.image(row)} END"
