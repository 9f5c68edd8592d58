"""Keys as every site knows them: canonical, one text for all forms of a value, as the conflict log shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.rows.canonical import canonical_texts
from concord.databases.postgresql.rows.shape import Shape
from concord.tables.manipulation import Manipulation


def key_text(shape: Shape, row: str) -> str:
    """The key as one text, the JSON array that the conflict log shows."""
    return f"to_jsonb(ARRAY[{', '.join(key_texts(shape, row))}]::text[])::text"


def key_texts(shape: Shape, row: str) -> list[str]:
    """The key as every site knows it, as one text for all forms of its value: 1.0 and 1.00 are one key (F42)."""
    texts = {column.name: formless(column, shape.key_in(row, column)) for column in shape.key}
    return [text for _, text in sorted(canonical_texts(shape.manipulation, texts).items())]


def listed_key(shape: Shape, row: str) -> str:
    """The join condition between a row and `listed` keys: one text names one key, also where several are equal.

    `1 day` and `24:00:00` are one interval. Keys of such types come from replications alone.
    """
    plain = all(column.type.fit_for_key and column.deterministic for column in shape.key)
    same_text = "" if plain else f" AND {key_text(shape, row)} = {key_text(shape, 'w')}"
    return f"{shape.same_key(row, 'w')}{same_text}"


def formless(column: Column, expression: str) -> str:
    """One text for all forms of a value, in SQL."""
    if column.type.root == "numeric" and column.type.kind in ("b", "d"):
        return f"trim_scale({expression})::text"
    if column.type.root == "bpchar" and column.type.kind in ("b", "d"):
        return f"{expression}::text"
    return column.type.exact(expression)


def listed(shape: Shape, keys: Sequence[str]) -> str:
    """Canonical keys, as the conflict log shows them, as a relation `w` in the key's own types and names."""
    parts = ", ".join(
        f"(u.k ->> {place})::{column.type.sql} AS {column.sql}" for place, column in enumerate(shape.key)
    )
    texts = ", ".join(literal(_own_key(shape, key)) for key in keys)
    return f"(SELECT {parts} FROM unnest(ARRAY[{texts}]::jsonb[]) u (k) OFFSET 0) w"


def later(shape: Shape, row: str, key: str | None) -> str:
    """Condition: the row's key comes after the canonical one, in the order of the site's own columns. Every key comes
    after None."""
    if key is None:
        return "true"
    return f"({shape.keys_of(row)}) > (SELECT {shape.keys_of('w')} FROM {listed(shape, [key])})"


def _own_key(shape: Shape, key: str) -> str:
    """The same key as the site keeps it, in the order of the shape."""
    if not shape.manipulation:
        return key
    names = sorted(shape.manipulation.canonical_names(shape.key_names))
    operations = (each for each in shape.manipulation.operations if set(each.own) & set(shape.key_names))
    own = Manipulation(operations=tuple(operations)).own_row(dict(zip(names, json.loads(key), strict=True)))
    return json.dumps([own[column.name] for column in shape.key])
