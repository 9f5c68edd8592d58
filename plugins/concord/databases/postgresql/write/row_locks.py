"""Locks of staged rows, taken as applications take theirs."""

from __future__ import annotations

from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.rows.stage import Staged


def lock(connection: Connection, staged: Staged) -> None:
    """Lock base rows, then shadow rows, in key order, as applications do. Keys that do not exist get a
    placeholder shadow row first, since nothing else can be locked (rule 3). A key that is out of scope gets
    none."""
    shape, order = staged.shape, staged.shape.keys_of("s")
    absent = f"NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"
    run(
        connection,
        _lock_rows(staged, f"{shape.table.sql} t", "s.concord_gone", "FOR UPDATE"),
        _lock_rows(staged, f"{shape.table.sql} t", "NOT s.concord_gone", "FOR NO KEY UPDATE"),
        f"""
INSERT INTO {shape.shadow.sql} ({shape.key_list}, origin, changed_at, derived, vector, deleted, born, position)
SELECT {order}, '', 0, 0, '{{}}', true, false, pg_current_xact_id() FROM {staged.typed} s
 WHERE {absent} AND NOT s.concord_out_of_scope ORDER BY {order} ON CONFLICT DO NOTHING""",
        _lock_rows(staged, f"{shape.shadow.sql} p", "true", "FOR UPDATE"),
    )


def _lock_rows(staged: Staged, relation: str, chosen: str, strength: str) -> str:
    """LATERAL keeps the staged rows on the outside: the plan looks each key up, and never walks the table.

    `relation` ends in its alias: `t` for the base table, `p` for the shadow table.
    """
    shape, order = staged.shape, staged.shape.keys_of("s")
    same_key = shape.same_key(relation[-1], "s")
    return (
        f"SELECT count(*) FROM (SELECT {order} FROM {staged.typed} s WHERE {chosen} ORDER BY {order}) s"
        f" CROSS JOIN LATERAL (SELECT 1 FROM {relation} WHERE {same_key} {strength}) x"
    )
