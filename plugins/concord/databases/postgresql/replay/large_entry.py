"""A large entry is replayed by set, in one transaction: what is left of each row is written once (S0-47, T4).

It gives the tables and the counts that the loop gives. Where sets cannot tell that, they refuse, nothing of them
stands, and the loop replays the entry. One thing differs: a constraint that the subscriber alone has is not asked
about values that the entry itself has replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints.verification import parents_first
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.replay.chains import NOT_BY_SET, WITHIN, Chains, by_loop
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.net_rows import NetRows
from concord.databases.postgresql.replay.procedure import COLUMNS_FIRST, LOST, counted, ended, variables
from concord.jobs.replication import Conversions

__all__ = ["NOT_BY_SET", "create"]


def create(
    tables: Sequence[ReplicatedTable], level: Level, conversions: Conversions, watched: Collection[int]
) -> Iterator[str]:
    """The statements that make it, for this session. `watched`: tables with triggers that fire all the same."""
    exact = [each for each in tables if _is_exact(each, watched)]
    ordered = _parents_first(exact)
    chains = [Chains(each) for each in exact]
    rows = [NetRows(each, refuses=conversions is Conversions.REFUSE) for each in ordered]
    yield from (each.create for each in chains)
    body = f"""
{COLUMNS_FIRST}
DECLARE
  e record; n bigint; emptied_later boolean; converted bigint := 0;
  {variables(tables)}
  {" ".join(each.declared for each in chains)}
BEGIN
  SELECT * INTO STRICT e FROM {ENTRIES} WHERE number > since;
  {level.entry("e")};
  IF NOT FOUND THEN RAISE EXCEPTION 'a newer run has taken over' USING ERRCODE = '{LOST}'; END IF;
  {"".join(_refused(each) for each in tables if each not in exact)}
  {"".join(each.found() for each in chains)}
  {"".join(_if_touched(each.place, each.deleted()) for each in reversed(rows))}
  {"".join(_if_touched(each.place, each.written()) for each in rows)}
  {ended(level)}
  done := {counted(tables)};
  PERFORM set_config('synchronous_commit', 'on', true);
END"""
    yield (
        "CREATE OR REPLACE PROCEDURE pg_temp.concord_replay_by_set(since bigint, INOUT done jsonb)"
        f" LANGUAGE plpgsql AS {literal(body)}"
    )


def _is_exact(table: ReplicatedTable, watched: Collection[int]) -> bool:
    """Can sets ever do what operations do one after the other?

    A trigger that fires all the same sees every operation. A key that is equal to another one, byte for byte
    different, and an identity outside of the key follow rules of their own. A history has a version of each operation.
    """
    generated = {column.name for column in table.columns if column.identity == "a"}
    looks_alike = any(not column.deterministic for column in table.key_columns)
    return (
        table.kind is not Kind.CALLS
        and table.history is None
        and table.table.oid not in watched
        and generated <= set(table.key)
        and not looks_alike
    )


def _parents_first(tables: Sequence[ReplicatedTable]) -> list[ReplicatedTable]:
    order = parents_first([each.table for each in tables])
    return sorted(tables, key=lambda each: order.index(each.table.name))


def _refused(table: ReplicatedTable) -> str:
    return f"IF EXISTS (SELECT FROM {table.staged} s WHERE {WITHIN}) THEN {by_loop('not by set')} END IF;\n  "


def _if_touched(place: int, statements: str) -> str:
    return f"""
  IF n_{place} > 0 THEN{statements}
  END IF;"""
