"""Which written rows would break a key across rows that replica role does not check? By the row, not by the value.

`constraints` verifies every write and names values; a rehearsal asks which of its rows to leave out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from concord.databases.contract.quoting import qualified, quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.keys import ForeignKey, UniqueKey
from concord.databases.postgresql.rows.shape import Shape
from concord.tables.replication_set import TableName


def found(
    connection: Connection, shape: Shape, suspects: str, changeable: Collection[TableName]
) -> Iterator[tuple[int, str]]:
    """Number and reason of every suspect, as written. A suspect has lost its parent, has left children behind, or
    has another row's value in a deferrable unique key.

    Where both tables are `changeable`, the children of a row follow its values, and it may move.
    """
    # Under a key that is NOT VALID only the write itself can tell an orphan from one of before.
    for foreign_key in (key for key in shape.table.foreign_keys if key.validated):
        yield from _numbers(
            connection, _without_parent(shape, suspects, foreign_key), _no_parent(foreign_key)
        )
    for foreign_key in shape.table.referring:
        if set(foreign_key.referenced) <= {*shape.shadow.key, *referred(shape)}:
            left = _with_children(suspects, foreign_key)
            if {foreign_key.child, shape.table.name} <= {*changeable}:
                left += " AND q.concord_gone"
            yield from _numbers(connection, left, _children(foreign_key))
    for unique in shape.table.deferrable_unique:
        reason = f"another row has its {', '.join(unique.columns)} already"
        yield from _numbers(connection, _twice(shape, suspects, unique), reason)


def referred(shape: Shape) -> list[str]:
    """The columns outside of the key by which other rows refer: suspects have them as they are before the write."""
    names = {name for key in shape.table.referring for name in key.referenced} - {*shape.shadow.key}
    return sorted(names & {column.name for column in shape.table.columns})


def _numbers(connection: Connection, query: str, reason: str) -> Iterator[tuple[int, str]]:
    for (number,) in rows(connection, query):
        yield number, reason


def _no_parent(key: ForeignKey) -> str:
    return f"{key.child} refers by {key.name} to a row of {key.parent} that is not there"


def _children(key: ForeignKey) -> str:
    return f"{key.child} still refers to the row by {key.name}"


def _standing(shape: Shape, suspects: str) -> str:
    return (
        f"SELECT q.concord_n FROM {suspects} q JOIN {shape.table.sql} c ON {shape.same_key('c', 'q')}"
        " WHERE q.concord_refused IS NULL"
    )


def _without_parent(shape: Shape, suspects: str, key: ForeignKey) -> str:
    given = " AND ".join(f"c.{quote(name)} IS NOT NULL" for name in key.columns)
    return (
        f"{_standing(shape, suspects)} AND {given}"
        f" AND NOT EXISTS (SELECT 1 FROM {_relation(key.parent)} p WHERE {key.refers('p', 'c')})"
    )


def _with_children(suspects: str, key: ForeignKey) -> str:
    """Suspects that are gone, or have other values now, while rows still refer to them and nobody else has these."""
    return (
        f"SELECT q.concord_n FROM {suspects} q WHERE q.concord_refused IS NULL"
        f" AND EXISTS (SELECT 1 FROM {_relation(key.child)} c WHERE {key.refers('q', 'c')})"
        f" AND NOT EXISTS (SELECT 1 FROM {_relation(key.parent)} p WHERE {key.same_parent('p', 'q')})"
    )


def _twice(shape: Shape, suspects: str, unique: UniqueKey) -> str:
    return (
        f"{_standing(shape, suspects)} AND EXISTS"
        f" (SELECT 1 FROM {shape.table.sql} b WHERE {unique.same('b', 'c')} AND NOT ({shape.same_key('b', 'c')}))"
    )


def _relation(name: TableName) -> str:
    return qualified(name.schema_name, name.name)
