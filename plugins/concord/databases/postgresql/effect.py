"""How many rows that stand at the target now would go, or be overwritten: what the brakes are decided by."""

from __future__ import annotations

from concord.brake import Brakes, Effect
from concord.databases.postgresql.guard import WINNING
from concord.databases.postgresql.session import Connection, one
from concord.databases.postgresql.stage import Staged
from concord.databases.quoting import literal


def effect(connection: Connection, staged: Staged, brakes: Brakes) -> Effect:
    """One look-up for every staged row, and as many rows of the table counted as can matter (`concord.brake`)."""
    shape = staged.shape
    deletes, changes = one(
        connection,
        f"SELECT count(*) FILTER (WHERE {_removes(staged)}), count(*) FILTER (WHERE NOT s.concord_deleted AND"
        f" NOT s.concord_gone) FROM {staged.typed} s CROSS JOIN LATERAL (SELECT t.* FROM {shape.table.sql} t"
        f" WHERE {shape.same_key('t', 's')} OFFSET 0) t"
        f" WHERE s.concord_verdict IN ({', '.join(map(literal, WINNING))})",
    )
    matter = max(
        brakes.deletes.rows_that_matter(deletes, brakes.smallest_table),
        brakes.changes.rows_that_matter(changes, brakes.smallest_table),
    )
    counted = f"SELECT 1 FROM {shape.table.sql} t WHERE {shape.in_scope('t')} LIMIT {matter}"
    (rows,) = one(connection, f"SELECT count(*) FROM ({counted}) x")
    return Effect(deletes=deletes, changes=changes, rows=rows)


def _removes(staged: Staged) -> str:
    """Condition: the staged row `s` takes the shared row `t` away, or flags it as deleted."""
    shape = staged.shape
    if shape.marks is not None:
        return f"s.concord_deleted AND NOT {shape.marks.flag('t')}"
    return f"s.concord_gone AND {shape.in_scope('t')}"
