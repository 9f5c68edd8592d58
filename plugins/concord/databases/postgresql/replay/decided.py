"""Keys of which a person has decided whose row stands: operations on them from before that are passed over (S2-21).

They stand in the level's own row, and so in the transaction that decides them. A key is a list of texts, as the pinned
settings write its values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from concord.databases.contract.entry_decision import Keys
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.replay.level import Level

#: One JSON object a key: its table, and the last number of the other site's log that was decided about.
_EACH = "jsonb_array_elements(r.decided) d"


def add(connection: Connection, level: Level, keys: Keys, until: int) -> None:
    """The same key twice is harmless: the later number counts. Raises LeaseLost."""
    new = [{"table": table, "key": list(key), "until": until} for table, each in keys.items() for key in each]
    level.change(connection, f"decided = coalesce(r.decided, '[]') || {literal(json.dumps(new))}::jsonb")


def prepare(
    connection: Connection, level: Level, tables: Sequence[ReplicatedTable]
) -> tuple[ReplicatedTable, ...]:
    """Forget those that the replay has passed; the others are in temporary tables, with their own types."""
    found = _left(connection, level)
    made = []
    for table in tables:
        if keys := found.get(table.name):
            create(connection, table, table.decided, keys, ", until bigint")
        made.append(replace(table, has_decided=bool(keys)))
    return tuple(made)


def _left(connection: Connection, level: Level) -> Mapping[str, list[list[str]]]:
    """By table: keys, each with its number at its end."""
    if not rows(connection, f"SELECT FROM concord.replay r WHERE {level.mine} AND decided IS NOT NULL"):
        return {}
    left = f"SELECT jsonb_agg(d) FROM {_EACH} WHERE (d ->> 'until')::bigint > r.level"
    level.change(connection, f"decided = ({left})")
    query = f"SELECT d ->> 'table', d -> 'key' || (d -> 'until') FROM concord.replay r, {_EACH} WHERE {level.mine}"
    found: dict[str, list[list[str]]] = {}
    for table, key in rows(connection, query):
        found.setdefault(table, []).append([str(part) for part in key])
    return found


def create(
    connection: Connection, table: ReplicatedTable, name: str, keys: Sequence[Sequence[str]], more: str = ""
) -> None:
    """A temporary table of keys, `k0` and so on."""
    types = [column.type.sql for column in table.key_columns]
    columns = ", ".join(f"k{at} {kind}" for at, kind in enumerate(types))
    parts = [f"(k ->> {at})::{kind}" for at, kind in enumerate(types)]
    if more:
        parts.append(f"(k ->> {len(types)})::bigint")
    given = f"jsonb_array_elements({literal(json.dumps(keys))}) k"
    run(
        connection,
        f"DROP TABLE IF EXISTS pg_temp.{name}",
        f"CREATE TEMPORARY TABLE {name} ({columns}{more})",
        f"INSERT INTO pg_temp.{name} SELECT {', '.join(parts)} FROM {given}",
    )


def judged(table: ReplicatedTable, row: str) -> str:
    """The statements before an operation: on a decided key it does nothing.

    Of an update that changes the key, the part on the other key is left: an insert or a delete.
    """
    if not table.has_decided:
        return ""
    before, after = ([told(row, name) for name in table.key] for told in (table.old, table.new))
    return f"""
        IF r.operation IN ('U', 'D') AND {_is_decided(table, before)} THEN
          r.operation := CASE WHEN r.operation = 'D' OR {_is_decided(table, after)} THEN 'S' ELSE 'I' END;
        ELSIF r.operation IN ('U', 'I') AND {_is_decided(table, after)} THEN
          r.operation := CASE WHEN r.operation = 'U' THEN 'D' ELSE 'S' END;
        END IF;"""


def _is_decided(table: ReplicatedTable, values: Sequence[str]) -> str:
    same = " AND ".join(f"d.k{at} = {value}" for at, value in enumerate(values))
    return f"EXISTS (SELECT FROM pg_temp.{table.decided} d WHERE d.until >= entry AND {same})"
