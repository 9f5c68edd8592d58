"""The canonical form of a site's rows, in SQL: what two sites that keep a table differently can compare.

A second form of `tables.manipulation`, for rows that come back the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.types import descriptor_of
from concord.tables.manipulation import Cast, Combine, Cut, Manipulation, Operation, Rename, Split, Values
from concord.tables.structure import CanonicalColumn, Structure

#: Stands before a text that has no canonical form, so that it equals nothing at another site.
_NONE = literal("\x01")


def structure_of(
    site: str, shadow: Shadow, manipulation: Manipulation, added: Collection[str] = ()
) -> Structure:
    """The canonical columns of one table at one site; `added` are those of its own that are new there."""
    columns = {
        column.name: CanonicalColumn(
            column.type.sql,
            column.type.common,
            column.generated,
            added=column.name in added,
            default=column.filled or column.default,
            not_null=column.not_null,
            mappable=column.type.mappable,
        )
        for column in (shadow.typed(shadow.table.columns) if shadow.listed is None else shadow.columns)
    }
    for operation in manipulation.operations:
        taken = [columns.pop(name) for name in operation.own if name in columns]
        columns |= dict(_made(operation, taken)) if len(taken) == len(operation.own) else {}
    return Structure(site, columns, frozenset(manipulation.canonical_names(shadow.key)))


def _made(operation: Operation, taken: list[CanonicalColumn]) -> list[tuple[str, CanonicalColumn]]:
    """The canonical types of an operation's columns: known for a rename or cast, else any text."""
    match operation:
        case Rename():
            return list(zip(operation.canonical, taken, strict=True))
        case Cast():
            kind = operation.canonical_form.type
            return [(operation.canonical[0], CanonicalColumn(kind, descriptor_of(kind)))]
        case _:
            return [(name, CanonicalColumn("mapped", None)) for name in operation.canonical]


def canonical_texts(manipulation: Manipulation, own: Mapping[str, str]) -> dict[str, str]:
    """SQL of a row's canonical columns, from SQL of its own columns as exact texts.

    Columns that `own` does not hold, such as all but the key, are left out together with what is made of them.
    """
    texts = dict(own)
    for operation in manipulation.operations:
        if all(name in own for name in operation.own):
            values = [texts.pop(name) for name in operation.own]
            texts |= dict(zip(operation.canonical, _canonical(operation, values), strict=True))
    return texts


def _canonical(operation: Operation, values: list[str]) -> list[str]:
    match operation:
        case Split():
            return [_together(operation.cut, values)]
        case Combine():
            return _apart(operation.cut, values[0])
        case Values():
            words = "".join(
                f" WHEN {literal(own)} THEN {literal(value)}" for value, own in operation.words.items()
            )
            return [f"CASE {values[0]}{words} ELSE {_NONE} || {values[0]} END"]
        case Rename() | Cast():
            return values
        case _:
            return []


def _together(cut: Cut, values: list[str]) -> str:
    """NULL where all parts are; where some are, the row has no canonical form."""
    joined = f" || {literal(cut.separator or '')} || ".join(values)
    return f"CASE WHEN num_nulls({', '.join(values)}) IN (0, {cut.parts}) THEN {joined} ELSE {_NONE} END"


def _apart(cut: Cut, value: str) -> list[str]:
    if cut.lengths is not None:
        pairs = zip(cut.starts, cut.lengths, strict=True)
        parts = [f"substr({value}, {start + 1}, {length})" for start, length in pairs]
        whole = f"length({value}) > {sum(cut.lengths)}"
    else:
        array = f"string_to_array({value}, {literal(cut.separator or '')})"
        parts = [f"coalesce(({array})[{place + 1}], '')" for place in range(cut.parts)]
        parts = [f"CASE WHEN {value} IS NOT NULL THEN {part} END" for part in parts]
        whole = f"greatest(cardinality({array}), 1) <> {cut.parts}"
    return [f"CASE WHEN {whole} THEN {_NONE} || {value} ELSE {part} END" for part in parts]
