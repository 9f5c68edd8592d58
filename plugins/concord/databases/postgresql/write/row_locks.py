"""Locks of staged rows, taken as applications take theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from concord.databases.contract.ends import Job
from concord.databases.postgresql.facts.connection import Connection, every, one, run
from concord.databases.postgresql.facts.table_errors import of_table
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import unregistered


def lock(
    connection: Connection,
    staged: Sequence[Staged],
    job: Job,
    *,
    again: bool = True,
    lock_others: Callable[[Connection], bool] | None = None,
) -> Mapping[str, int]:
    """Lock base rows, then shadow rows, in key order, as applications do. Keys that do not exist get a
    placeholder shadow row first, since nothing else can be locked (rule 3). A key that is out of scope gets
    none. Of the tables whose edits are registered, by name, how many base rows are locked.

    Where the log tells of edits, none of the locked rows has one that is not registered. That is asked of each row, or
    registered `again` while they are locked. Raises WriteContended where one has.

    `lock_others` locks rows that did not arrive, before what has been committed is registered; are there any?
    """
    registering = [each for each in staged if each.shape.registers]
    logged = [each for each in registering if each.shape.by_log]
    (since,) = one(connection, "SELECT pg_current_snapshot()::text") if logged else ("",)
    locked = {}
    for each in registering:
        with _of(each, job):
            locked[each.shape.name] = sum(int(count) for ((count,),) in every(connection, *_base(each)))
    others = again and lock_others is not None and lock_others(connection)
    if others or (logged and again):
        unregistered.register(job, [each.shape.name for each in logged])
    for each in staged:
        with _of(each, job):
            run(connection, *(() if each in registering else _base(each)), *_shadow(each))
    for each in logged:
        unregistered.refuse(connection, each, locked[each.shape.name], registered=again, since=since)
    return locked


def _of(staged: Staged, job: Job) -> AbstractContextManager[None]:
    return of_table(staged.shape.name, job.target.name, private=bool(staged.shape.private))


def _base(staged: Staged) -> list[str]:
    table = f"{staged.shape.table.sql} t"
    return [
        _lock_rows(staged, table, "s.concord_gone", "FOR UPDATE"),
        _lock_rows(staged, table, "NOT s.concord_gone", "FOR NO KEY UPDATE"),
    ]


def _shadow(staged: Staged) -> list[str]:
    shape, order = staged.shape, staged.shape.keys_of("s")
    absent = f"NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 's')})"
    return [
        f"""
INSERT INTO {shape.shadow.sql} ({shape.key_list}, origin, changed_at, derived, vector, deleted, born, position)
SELECT {order}, '', 0, 0, '{{}}', true, false, pg_current_xact_id() FROM {staged.typed} s
 WHERE {absent} AND NOT s.concord_out_of_scope ORDER BY {order} ON CONFLICT DO NOTHING""",
        _lock_rows(staged, f"{shape.shadow.sql} p", "true", "FOR UPDATE"),
    ]


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
