"""Rows that a hook adds beside those that are written: in the same transaction, in tables that nothing carries.

Triggers are silent as for all that Concord writes (S0-17), and with them foreign keys: a table that has one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import psycopg

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.facts.privileges import Grant, Kind
from concord.databases.postgresql.facts.refusal import is_refusal, told
from concord.messages.errors import HookFailed
from concord.rules.hook import Added
from concord.rules.hook_function import Hooked
from concord.tables.replication_set import ReplicatedTable

#: Of the table `t`: each column, whether a row must give it, and whether none may.
_COLUMNS = """
SELECT a.attname::text, (a.attnotnull OR y.typnotnull) AND NOT a.atthasdef AND a.attidentity = ''
       AND y.typdefault IS NULL, a.attgenerated <> '' OR a.attidentity = 'a'
  FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid
 WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

#: The sequences of which defaults of its columns draw numbers, each with the column.
_DRAWN = """
SELECT n.nspname::text, s.relname::text, a.attname::text
  FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  JOIN pg_depend o ON o.classid = 'pg_attrdef'::regclass AND o.objid = d.oid AND o.refclassid = 'pg_class'::regclass
  JOIN pg_class s ON s.oid = o.refobjid AND s.relkind = 'S' JOIN pg_namespace n ON n.oid = s.relnamespace
 WHERE d.adrelid = {table} ORDER BY 1, 2"""


def problems(connection: Connection, site: str, wanted: ReplicatedTable) -> Iterator[str]:
    """Why the table's hook cannot add its rows at the site, each one line."""
    for added in _added(site, [wanted]):
        table = f"{site}: {wanted.name}: its hook adds rows to {added.name}, "
        found = rows(connection, _COLUMNS.format(table=_oid(added)))
        needed = [name for name, must, _ in found if must and name not in added.columns]
        generated = [name for name, _, never in found if never and name in added.columns]
        if not found:
            yield f"{table}which is not there; make it, or take it out of `adds`"
        elif missing := sorted(set(added.columns) - {name for name, _, _ in found}):
            yield f"{table}which has no column {', '.join(missing)}; correct `adds`"
        elif needed:
            yield f"{table}whose column {', '.join(needed)} has no default and takes no NULL; name it in `adds`"
        elif generated:
            yield f"{table}whose column {', '.join(generated)} takes no value of others; take it out of `adds`"
        keys = (
            f"SELECT conname FROM pg_constraint WHERE conrelid = {_oid(added)} AND contype = 'f' ORDER BY 1"
        )
        for (key,) in rows(connection, keys):
            yield f"{table}whose foreign key {key} would not be checked; drop it, or choose another table"


def needed_grants(
    connection: Connection, site: str, tables: Iterable[ReplicatedTable], applier: str
) -> list[Grant]:
    """The applier may draw the numbers of columns that hooks of these tables do not give."""
    found = {
        (schema, sequence): None
        for added in _added(site, tables)
        for schema, sequence, column in rows(connection, _DRAWN.format(table=_oid(added)))
        if column not in added.columns
    }
    return [
        right
        for schema, sequence in found
        for right in (
            Grant(applier, ("USAGE",), Kind.SCHEMA, (schema,)),
            Grant(applier, ("USAGE",), Kind.SEQUENCE, (schema, sequence)),
        )
    ]


def relations(connection: Connection, site: str, tables: Iterable[ReplicatedTable]) -> list[int]:
    """The tables to which hooks of these add rows, as far as they exist, by oid."""
    found = [one(connection, f"SELECT {_oid(added)}::oid::bigint")[0] for added in _added(site, tables)]
    return [oid for oid in found if oid is not None]


def _added(site: str, tables: Iterable[ReplicatedTable]) -> Iterator[Added]:
    for wanted in tables:
        hook = wanted.hooks.get(site)
        yield from () if hook is None else hook.adds


def _oid(added: Added) -> str:
    return f"to_regclass({literal(qualified(added.table.schema_name, added.table.name))})"


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
