"""Under replica role the database checks no foreign key (`foreign_keys`) and no deferrable key: the write step does
(rule 13)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.keys import UniqueKey
from concord.databases.postgresql.facts.table_errors import of_table
from concord.databases.postgresql.write.judged import Judged
from concord.messages.errors import ConstraintViolated
from concord.tables.replication_set import TableName


def verify(connection: Connection, judged: Sequence[Judged], site: str) -> None:
    """Every deferrable unique key that the write touched.

    Raises ConstraintViolated; the transaction then rolls back and nothing was written.
    """
    for each in judged:
        shape = each.staged.shape
        with of_table(shape.name, site, private=bool(shape.private)):
            for unique in shape.table.deferrable_unique:
                _verify_unique(connection, each, unique, site)


def _verify_unique(connection: Connection, judged: Judged, unique: UniqueKey, site: str) -> None:
    """A deferrable unique constraint is checked by a trigger that replica role silences."""
    shape = judged.staged.shape
    twice = rows(
        connection,
        f"SELECT {', '.join(shape.canonical_key('a'))} FROM {judged.staged.typed} s"
        f" JOIN {shape.table.sql} a ON {shape.same_key('a', 's')} JOIN {shape.table.sql} b ON {unique.same('a', 'b')}"
        f" WHERE NOT ({shape.same_key('a', 'b')}) ORDER BY 1 LIMIT 1",
    )
    for key in twice:
        row = "" if shape.key_is_private else f", one of them {', '.join(key)},"
        raise ConstraintViolated(
            f"{site}: two rows of {shape.name}{row} would have the same unique {unique}: two sites used"
            " one value. Change one of the rows; nothing was written"
        )


def parents_first(tables: Iterator[Table] | Sequence[Table]) -> list[TableName]:
    """Tables in an order in which every parent stands before its children, cycles broken by name (F44)."""
    remaining = {table.name: {key.parent for key in table.foreign_keys} - {table.name} for table in tables}
    ordered: list[TableName] = []
    while remaining:
        free = [name for name, parents in remaining.items() if not parents & remaining.keys()]
        for name in sorted(free or list(remaining)[:1], key=str):
            ordered.append(name)
            del remaining[name]
    return ordered
