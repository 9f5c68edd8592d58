"""How many rows that stand at the target now would go, or be overwritten: what the brakes are decided by."""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, one
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write.guard import WINNING
from concord.rules.brake import Brakes, Effect


def effect(connection: Connection, staged: Staged, brakes: Brakes, most: Effect) -> Effect:
    """One look-up for every staged row, unless `most` is let pass, which it cannot exceed."""
    bound = _in_table(connection, staged, brakes, most)
    if not brakes.exceeded(bound):
        return bound
    deletes, changes = one(
        connection,
        f"SELECT count(*) FILTER (WHERE {_removes(staged)}), count(*) FILTER (WHERE NOT s.concord_deleted AND"
        f" NOT s.concord_gone) FROM {staged.typed} s CROSS JOIN LATERAL (SELECT t.* FROM {staged.shape.table.sql} t"
        f" WHERE {staged.shape.same_key('t', 's')} OFFSET 0) t"
        f" WHERE s.concord_verdict IN ({', '.join(map(literal, WINNING))})",
    )
    return _in_table(connection, staged, brakes, Effect(deletes=deletes, changes=changes))


def _in_table(connection: Connection, staged: Staged, brakes: Brakes, effect: Effect) -> Effect:
    """The same, with as many rows of the table counted as can matter (`rules.brake`)."""
    shape = staged.shape
    shared = f"SELECT 1 FROM {shape.table.sql} t WHERE {shape.in_scope('t')}"
    counted = f"{shared} LIMIT {brakes.rows_that_matter(effect)}"
    (rows,) = one(connection, f"SELECT count(*) FROM ({counted}) x")
    return effect.model_copy(update={"rows": rows})


def _removes(staged: Staged) -> str:
    """Condition: the staged row `s` takes the shared row `t` away, or flags it as deleted."""
    shape = staged.shape
    if shape.marks is not None:
        return f"s.concord_deleted AND NOT {shape.marks.flag('t')}"
    return f"s.concord_gone AND {shape.in_scope('t')}"
