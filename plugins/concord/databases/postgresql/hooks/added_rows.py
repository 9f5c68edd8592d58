"""Rows that a hook adds beside those that are written: in the same transaction, in tables that nothing carries.

Triggers are silent as for all that Concord writes (S0-17), and with them foreign keys: a table that has one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.messages.errors import HookFailed
from concord.rules.hook import Added
from concord.rules.hook_function import Hooked
from concord.tables.replication_set import ReplicatedTable


def problems(connection: Connection, site: str, wanted: ReplicatedTable) -> Iterator[str]:
    """Why the table's hook cannot add its rows at the site, each one line."""
    hook = wanted.hooks.get(site)
    for added in () if hook is None else hook.adds:
        table = f"{site}: {wanted.name}: its hook adds rows to {added.name}, "
        relation = f"to_regclass({literal(qualified(added.table.schema_name, added.table.name))})"
        found = rows(
            connection,
            f"SELECT attname::text FROM pg_attribute WHERE attrelid = {relation} AND attnum > 0 AND NOT attisdropped",
        )
        if not found:
            yield f"{table}which is not there; make it, or take it out of `adds`"
        elif missing := sorted(set(added.columns) - {name for (name,) in found}):
            yield f"{table}which has no column {', '.join(missing)}; correct `adds`"
        keys = f"SELECT conname FROM pg_constraint WHERE conrelid = {relation} AND contype = 'f' ORDER BY 1"
        for (key,) in rows(connection, keys):
            yield f"{table}whose foreign key {key} would not be checked; drop it, or choose another table"


def refuse_unfit(connection: Connection, site: str, wanted: ReplicatedTable) -> None:
    """Raises HookFailed."""
    if found := list(problems(connection, site, wanted)):
        raise HookFailed(f"{'; '.join(found)}. Nothing was written")


def insert(connection: Connection, hooked: Hooked, added: Added, found: str) -> int:
    """Add the rows of a query, each a JSON object of texts. Raises HookFailed where the site refuses one."""
    table = qualified(added.table.schema_name, added.table.name)
    columns = ", ".join(map(quote, added.columns))
    values = ", ".join(f"r.{quote(column)}" for column in added.columns)
    try:
        return run(
            connection,
            f"INSERT INTO {table} ({columns}) SELECT {values} FROM ({found}) f(row)"
            f" CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, f.row) r",
        )
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        why = told(error, private=hooked.private)
        raise HookFailed(
            f"{hooked.told} adds a row that {added.name} refuses: {why}; nothing was written"
        ) from (None if hooked.private else error)
