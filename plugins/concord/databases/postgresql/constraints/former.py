"""Rows that a write takes out of a table, or whose values it takes away that other rows refer to, as they were
before.

Only such rows can leave a child without its parent, so only they are looked at (rule 13): the cost follows the
changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, one, run
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write.judged import Judged


def relation(shape: Shape) -> str:
    """The temporary table of one table's former rows: every stored column under its own name, and `concord_lost`.

    A row that gave way to another row for a unique value cannot come back (lost); one that was merely deleted can.
    """
    return f"pg_temp.former_{shape.table.oid}"


def referred(shape: Shape) -> set[str]:
    """The columns that some foreign key refers to."""
    return {name for key in shape.table.referring for name in key.referenced}


def open_for(connection: Connection, shape: Shape) -> None:
    """An empty place for the former rows of a table that foreign keys refer to; others need none."""
    if shape.table.referring:
        columns = ", ".join(f"t.{column.sql}" for column in shape.table.sent)
        run(
            connection,
            f"CREATE TEMPORARY TABLE {relation(shape).partition('.')[2]} ON COMMIT DROP AS"
            f" SELECT {columns}, false AS concord_lost FROM {shape.table.sql} t WITH NO DATA",
        )


def keep(connection: Connection, shape: Shape, columns: Sequence[Column], found: str, *, lost: bool) -> None:
    """Keep rows: `found` is what follows FROM, where the rows are called `t`."""
    if shape.table.referring:
        names = ", ".join(column.sql for column in columns)
        values = ", ".join(f"t.{column.sql}" for column in columns)
        run(
            connection,
            f"INSERT INTO {relation(shape)} ({names}, concord_lost) SELECT {values}, {literal(lost)} FROM {found}",
        )


def remember(connection: Connection, judged: Judged) -> int:
    """Keep the rows that are about to go, or to lose a value that a foreign key refers to; how many there are now.

    Locked: what no link sees of them must not change either, until they go.
    """
    shape = judged.staged.shape
    if not shape.table.referring:
        return 0
    given_up = shape.differs([column for column in shape.rest if column.name in referred(shape)])
    arriving = (
        f"{judged.winners} s JOIN {shape.table.sql} t ON {shape.same_key('t', 's')}"
        f" WHERE s.concord_gone OR {given_up} FOR UPDATE OF t"
    )
    keep(connection, shape, shape.table.sent, arriving, lost=False)
    run(connection, f"ANALYZE {relation(shape)}")  # few rows: their children are found by index
    return int(one(connection, f"SELECT count(*) FROM {relation(shape)}")[0])
