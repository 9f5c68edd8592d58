"""A row filter as a condition: identifiers quoted, constants as literals, texts compared byte by byte.

The condition must give one answer at every site and at any time. So no locale orders texts: two sites may have
different ones. A moment is written out whole: 'today' is another day tomorrow, and a moment without its zone
another hour elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.catalogue import Column
from concord.tables.manipulation import Manipulation, Rename
from concord.tables.row_filter import (
    Comparison,
    Condition,
    Conjunction,
    Constant,
    Disjunction,
    Leaf,
    Membership,
    Negation,
    Null,
    Range,
    RowFilter,
    leaves,
)

_TEXTS = frozenset(["text", "varchar", "bpchar"])
_DATE, _TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
_ZONE = r" ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
#: type → how its constants are written, and an example.
_MOMENTS = {
    "date": (re.compile(_DATE), "2026-01-31"),
    "time": (re.compile(_TIME), "17:30"),
    "timestamp": (re.compile(rf"{_DATE}([ T]{_TIME})?"), "2026-01-31 17:30"),
    "timestamptz": (re.compile(rf"{_DATE}[ T]{_TIME}{_ZONE}"), "2026-01-31 17:30+00"),
}
_COMPARABLE = frozenset(
    ["int2", "int4", "int8", "numeric", "float4", "float8", "bool", "uuid", *_TEXTS, *_MOMENTS]
)

#: A filter's name of a column → the column of the site that holds it; None where there is none.
Columns = Callable[[str], Column | None]


def condition(where: RowFilter, columns: Columns, row: str) -> str:
    """SQL over the row that a statement calls `row`: true in scope, false out of it, never NULL.

    A second form of `tables.row_filter_text`: the text means what PostgreSQL reads in it.
    """
    return f"coalesce({_sql(where.condition, columns, row)}, false)"


def _sql(part: Condition, columns: Columns, row: str) -> str:
    match part:
        case Conjunction(parts):
            return "(" + " AND ".join(_sql(each, columns, row) for each in parts) + ")"
        case Disjunction(parts):
            return "(" + " OR ".join(_sql(each, columns, row) for each in parts) + ")"
        case Negation(inner):
            return f"(NOT {_sql(inner, columns, row)})"
        case _:
            return f"({_leaf(part, columns(part.column), row)})"


def _leaf(leaf: Leaf, column: Column | None, row: str) -> str:
    assert column is not None, "provisioning refuses a filter whose columns are not all there"
    negated = "NOT " if getattr(leaf, "negated", False) else ""
    name = f"{row}.{column.sql}"
    compared = f'{name} COLLATE "C"' if column.type.root in _TEXTS else name
    match leaf:
        case Comparison(_, operator, value):
            return f"{compared} {operator} {_constant(value)}"
        case Membership(_, values):
            return f"{compared} {negated}IN ({', '.join(map(_constant, values))})"
        case Range(_, low, high):
            return f"{compared} {negated}BETWEEN {_constant(low)} AND {_constant(high)}"
        case Null():
            return f"{name} IS {negated}NULL"


def _constant(value: Constant) -> str:
    """A string takes the column's type, as PostgreSQL reads an untyped literal; digits are what the parser let in."""
    return literal(value.text) if value.is_string else value.text


def canonical_column(shadow: Shadow, manipulation: Manipulation, name: str) -> Column | None:
    """The site's column that holds a canonical one as it is; None where it is mapped otherwise, or not there."""
    mapped = [each for each in manipulation.operations if name in each.canonical]
    if any(not isinstance(each, Rename) for each in mapped):
        return None
    own = mapped[0].own[0] if mapped else name
    return next((column for column in shadow.columns if column.name == own), None)


def problems(where: RowFilter, columns: Columns) -> Iterator[str]:
    """Why the filter cannot hold at a site: columns that are not there, types and constants that are not exact."""
    for name in where.columns:
        column = columns(name)
        if column is None:
            yield (
                f"filters by {name}, which is no replicated column there, or is mapped otherwise than by a new name;"
                " correct `where` or `owners`"
            )
        elif not _is_comparable(column):
            yield f"filters by {name} of type {column.type.sql}, whose values a row filter cannot compare exactly"
    for leaf in leaves(where.condition):
        column = columns(leaf.column)
        if column is not None and column.type.root in _MOMENTS:
            yield from _moment_problems(leaf, column)


def _is_comparable(column: Column) -> bool:
    root = column.type.root
    return column.type.kind in ("b", "d", "e") and (root in _COMPARABLE or root.startswith("enum:"))


def _moment_problems(leaf: Leaf, column: Column) -> Iterator[str]:
    written, example = _MOMENTS[column.type.root]
    for value in _constants(leaf):
        if not written.fullmatch(value.text):
            yield f"filters {leaf.column} by {value}, which is no fixed moment; write it as '{example}'"


def _constants(leaf: Leaf) -> tuple[Constant, ...]:
    match leaf:
        case Comparison(_, _, value):
            return (value,)
        case Membership(_, values):
            return values
        case Range(_, low, high):
            return (low, high)
        case Null():
            return ()
