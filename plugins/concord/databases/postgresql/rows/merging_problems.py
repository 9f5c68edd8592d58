"""The obstacles to merging a table's rows as configured, seen in its catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from concord.databases.postgresql.rows.shape import Shape
from concord.rules.kinds import KINDS, columns_of


def problems(shape: Shape) -> Iterator[str]:
    """Columns to calculate with that are not there, or hold no numbers; each to be read after the table's name."""
    for name, argument in shape.policy.named:
        if KINDS[name].merges and KINDS[name].takes_column:
            for column in columns_of(argument):
                yield from (
                    f"{problem}, which {name}({argument}) names" for problem in _problems(shape, column)
                )


def _problems(shape: Shape, column: str) -> Iterator[str]:
    if column not in shape.names:
        yield f"has no replicated column {column}"
    elif column in shape.key_names:
        yield f"has {column} in its key"
    elif (form := shape.forms.get(column)) is None or not form.is_number:
        kind = shape.table.column(column).type.sql
        yield f"has a column {column} of type {kind} instead of a whole or decimal number"
