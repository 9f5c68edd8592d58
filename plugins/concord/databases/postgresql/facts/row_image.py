"""A row as a JSON object of exact texts: what the conflict log, waiting rows and before-images keep of it.

jsonb holds no more than 256 MB, and a conflict is read with two images, whose escapes take up to six times as much. So
no image is larger than a bound, whoever makes it. A row beyond it is measured, and no text of it is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.types import ColumnType

#: Bytes of texts that an image may have.
LARGEST = 64 * 1024**2

#: The longest text of a value of these types, in bytes.
_LONGEST = 48
_SHORT = frozenset(
    ["int2", "int4", "int8", "float4", "float8", "bool", "uuid", "date", "timestamp", "timestamptz"]
)
#: Types whose stored bytes are their text: PostgreSQL knows how many these are without reading them.
_TEXTS = frozenset(["text", "varchar", "bpchar"])


def image(columns: Sequence[Column], row: str, *, staged: bool = False) -> str:
    """The row; NULL stays null, every type casts back (F69, F75). `staged`: its values are as they travelled."""
    texts = {
        each.name: (each.type.staged if staged else each.type.exact)(f"{row}.{each.sql}") for each in columns
    }
    return object_of(texts)


def object_of(texts: Mapping[str, str]) -> str:
    """The object with these names and texts."""
    names, values = ", ".join(map(literal, texts)), ", ".join(texts.values())
    return f"jsonb_object(ARRAY[{names}]::text[], ARRAY[{values}]::text[])"


def size(columns: Sequence[Column], row: str, *, staged: bool = False) -> str:
    """The bytes of its texts; never NULL."""
    sizes = [_octets(each.type, f"{row}.{each.sql}", staged=staged) for each in columns]
    return f"({' + '.join(f'coalesce({each}, 0)::bigint' for each in sizes) or '0'})"


def bounded(columns: Sequence[Column], row: str) -> str:
    """The image; NULL where it would be too large."""
    return f"CASE WHEN {size(columns, row)} <= {LARGEST} THEN {image(columns, row)} END"


def _octets(kind: ColumnType, value: str, *, staged: bool) -> str:
    """The bytes of one value's text. A text is not read for it, and of a larger one none is made."""
    plain = kind.built_in and kind.kind == "b"
    if plain and kind.root in _SHORT:
        return str(_LONGEST)
    if kind.root == "bytea" and kind.kind in ("b", "d"):
        return f"2 * octet_length({value})::bigint + 2"
    if plain and kind.root == "jsonb" and not (staged and kind.staging == "text"):
        whole = f"pg_column_size(jsonb_path_query_first({value}, 'strict $'))"  # as it is uncompressed
        return f"CASE WHEN {whole} > {LARGEST} THEN {whole} ELSE octet_length({value}::text) END"
    if staged and kind.staging == "text":
        return f"octet_length({value}::text)"  # a column that was retyped meanwhile is staged as its new type
    if plain and kind.root in _TEXTS:
        return f"octet_length({value})"
    return f"octet_length({kind.exact(value)})"
