"""An entry that cannot be replayed: which operation fails, all that it holds, and its record (S2-22, S4-136, T17)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.entries.staging import ENTRIES, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, rows, run
from concord.databases.postgresql.log.published import Kind
from concord.databases.postgresql.replay import appended, compared, orphans
from concord.databases.postgresql.replay.level import Level
from concord.databases.postgresql.replay.procedure import (
    COLUMNS_FIRST,
    cases,
    counted,
    ended,
    operations,
    variables,
)
from concord.databases.postgresql.replay.statements import Statements
from concord.jobs.replication import EntryOperation, ReplicationDefinition, SetAside

_WORDS = """CASE s.operation WHEN 'I' THEN 'insert' WHEN 'D' THEN 'delete' WHEN 'T' THEN 'truncate' ELSE 'update' END"""


def first_failure(
    connection: Connection, tables: Sequence[ReplicatedTable], replication: ReplicationDefinition, number: int
) -> int:
    """The seq of the operation at which an entry fails when it is tried once more; 0 where it does not."""
    run(connection, _tried(tables, replication))
    with in_transaction(connection) as trying:
        (seq,) = one(connection, f"SELECT pg_temp.concord_tried({number})")
        trying.last.append("ROLLBACK")
    return int(seq)


def _tried(tables: Sequence[ReplicatedTable], replication: ReplicationDefinition) -> str:
    """One block, and not one for each operation: a try costs one number of a transaction."""
    return _function(
        "concord_tried(since bigint) RETURNS bigint",
        tables,
        f"""
  BEGIN
    FOR r IN {operations(tables)} LOOP
      IF r.place >= 0 AND r.seq > mine.seq AND r.seq <= mine.last THEN
        at := r.seq;
        CASE r.place{"".join(cases(tables, replication))}
        END CASE;
      END IF;
    END LOOP;
  EXCEPTION WHEN OTHERS THEN
    RETURN at;
  END;
  RETURN 0;""",
    )


def one_by_one(
    tables: Sequence[ReplicatedTable],
    replication: ReplicationDefinition,
    level: Level,
    numbers: Sequence[str] = (),
    *,
    is_try: bool = False,
) -> str:
    """The statement that makes a function: an entry without the operations that fail, and what these said.

    `numbers`: of the errors that an operation may fail with; any other ends the entry. Empty: it may fail with any.
    Orphans end it, unless it is a try of which nothing stands.
    """
    found = orphans.references(tables) if replication.both_ways and not is_try else []
    passes = f"OR SQLSTATE <> ALL ({_texts(numbers)})" if numbers else ""
    return _function(
        "concord_one_by_one(since bigint) RETURNS jsonb",
        tables,
        f"""
  {level.entry("mine")};
  IF NOT FOUND THEN RETURN NULL; END IF;
  FOR r IN {operations(tables)} LOOP
    IF r.place >= 0 AND r.seq > mine.seq AND r.seq <= mine.last THEN
      at := converted;
      BEGIN
        CASE r.place{"".join(cases(tables, replication))}
        END CASE;
      EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE IN ('40P01', '55P03', '40001') {passes} THEN RAISE; END IF;
        converted := at;
        failed := failed || jsonb_build_array(jsonb_build_array(r.seq, SQLSTATE, SQLERRM));
      END;
    END IF;
  END LOOP;
  concord_began := mine.seq; concord_last := mine.last;
  {orphans.refused(found, compared.CONFLICT)}
  {ended(level)}
  RETURN jsonb_build_array({counted(tables)}, failed);""",
    )


def _function(head: str, tables: Sequence[ReplicatedTable], body: str) -> str:
    source = f"""
{COLUMNS_FIRST}
DECLARE
  mine record; r record; entry bigint; n bigint; at bigint := 0; converted bigint := 0; failed jsonb := '[]';
  orphaned boolean := false; concord_began bigint; concord_last bigint; {appended.VARIABLES}
  {variables(tables)}
BEGIN
  SELECT * INTO STRICT mine FROM {ENTRIES} WHERE number > since ORDER BY number LIMIT 1;
  entry := mine.number; {appended.entered("mine")}{body}
END"""
    return f"CREATE OR REPLACE FUNCTION pg_temp.{head} LANGUAGE plpgsql AS {literal(source)}"


def operations_of(
    connection: Connection,
    tables: Mapping[str, Sequence[str]],
    layout: Sequence[ReplicatedTable],
    number: int,
) -> list[EntryOperation]:
    """The operations of a staged entry in their order; without the values of private columns (`tables`)."""
    parts = [_operations_of(each, tables[each.name]) for each in layout]
    query = (
        f"SELECT o.* FROM {ENTRIES} e JOIN LATERAL ({' UNION ALL '.join(parts)}) o"
        f" ON o.seq > e.seq AND o.seq <= e.last WHERE e.number = {number} ORDER BY o.seq"
    )
    return [
        EntryOperation(seq=seq, table=table, operation=what, key=key, before=before, row=row, here=here)
        for seq, table, what, key, before, row, here in rows(connection, query)
    ]


def _operations_of(table: ReplicatedTable, private: Sequence[str]) -> str:
    if table.kind is Kind.CALLS:
        return _calls_of(table, private)
    columns, of = [column.name for column in table.columns], Statements(table, "s")
    after = ", ".join(f"s.c{at} AS {column.sql}" for at, column in enumerate(table.columns))
    olds = {name: f"s.o{at} AS {quote(name)}" for at, name in enumerate(table.before)}
    key = ", ".join(olds[column.name] for column in table.key_columns)
    old = ", ".join(olds.values()) if set(columns) == olds.keys() else "NULL WHERE false"
    present = ", ".join(f"t.{column.sql}" for column in table.columns)
    hidden, last = _texts(private), of.last_version
    unsent = (
        f"ARRAY(SELECT n.name FROM unnest({_texts(columns)}) WITH ORDINALITY n(name, place)"
        " WHERE get_bit(s.kept, n.place::int - 1) = 1)"
    )
    return f"""
SELECT s.seq, {literal(table.name)} AS name, {_WORDS} AS operation,
       CASE WHEN s.operation IN ('U', 'V', 'D') THEN (SELECT to_jsonb(x.*) FROM (SELECT {key}) x) - {hidden}
       END AS key,
       CASE WHEN s.operation IN ('U', 'V', 'D') THEN (SELECT to_jsonb(x.*) FROM (SELECT {old}) x) - {hidden}
       END AS before,
       CASE WHEN s.operation IN ('I', 'U', 'V')
            THEN (SELECT to_jsonb(x.*) FROM (SELECT {after}) x) - {hidden} - {unsent}
       END AS image,
       CASE WHEN s.operation = 'I'
            THEN (SELECT to_jsonb(x.*) FROM (SELECT {present} FROM {of.sql} t WHERE {of.at_new_key}{last}) x) - {hidden}
            WHEN s.operation <> 'T'
            THEN (SELECT to_jsonb(x.*) FROM (SELECT {present} FROM {of.sql} t WHERE {of.at_old_key}{last}) x) - {hidden}
       END AS here FROM {table.staged} s"""


def _calls_of(table: ReplicatedTable, private: Sequence[str]) -> str:
    """Each under its procedure's name, with the arguments as `row`."""
    of = Statements(table, "s").values
    told = f"jsonb_build_object('arguments', {of['arguments']}) - {_texts(private)}"
    return f"""
SELECT s.seq, {of["schema_name"]} || '.' || {of["name"]}, 'call', NULL, NULL, {told}, NULL FROM {table.staged} s"""


def _texts(names: Sequence[str]) -> str:
    return f"ARRAY[{', '.join(map(literal, names))}]::text[]"


def record(
    connection: Connection, replication: str, asked: SetAside, found: Sequence[EntryOperation]
) -> None:
    """Keep what is not replayed, for people: its tables differ from here on (S4-136)."""
    tables = sorted({each.table for each in found})
    told: list[Any] = [each.model_dump(mode="json", exclude_none=True) for each in found]
    run(
        connection,
        "INSERT INTO concord.skipped (replication, number, reason, by, tables, operations) VALUES"
        f" ({literal(replication)}, {asked.number}, {literal(asked.reason)}, {literal(asked.by)},"
        f" {_texts(tables)}, {literal(json.dumps(told))}::jsonb)",
    )
