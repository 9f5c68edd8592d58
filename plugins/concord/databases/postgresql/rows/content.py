"""How many rows a table holds and what they are, computed by the database itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.rows.shape import Shape


@dataclass(frozen=True, slots=True)
class Content:
    """Row count, and a hash over the exact text of every row that does not depend on their order."""

    table: str
    rows: int
    hash: str


def content(connection: Connection, shapes: Sequence[Shape]) -> dict[str, Content]:
    """The content of every table in one consistent cut, of the rows in scope alone. Reads each table once."""
    left, right = (
        f"coalesce(sum(('x' || {half}(h, 16))::bit(64)::bigint::numeric), 0)" for half in ("left", "right")
    )
    queries = [
        f"SELECT {literal(shape.name)}, count(*), {left}::text || '/' || {right}::text"
        f" FROM (SELECT md5({_row_text(shape)}) AS h FROM {shape.table.sql} t WHERE {shape.in_scope('t')}) x"
        for shape in shapes
    ]
    if not queries:
        return {}
    return {
        name: Content(name, count, digest)
        for name, count, digest in rows(connection, " UNION ALL ".join(queries))
    }


def _row_text(shape: Shape) -> str:
    """In canonical form; a record's text form quotes each field, so that no two rows read the same."""
    return f"ROW({', '.join(shape.canonical_row('t'))})::text"


def comparable(ours: Sequence[Shape], theirs: Sequence[Shape]) -> tuple[list[Shape], list[Shape]]:
    """Both sites' shapes such that equal rows read the same: a mark as exactly as both sites can hold it (F18)."""
    pairs = list(zip(ours, theirs, strict=True))
    return [one.readable_with(other) for one, other in pairs], [
        other.readable_with(one) for one, other in pairs
    ]
