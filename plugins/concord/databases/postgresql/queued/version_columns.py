"""A table's own version column: a trigger gives it another UUID with each write of a user's (S3-02, S4-147, S4-148).

The column travels as all others do. Replays run under replica role, where the trigger is silent: so equal values mean
the same version at both sites (S4-149).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import Connection, rows

#: They fire after all others: no trigger of users' takes the value away.
INSERTED, UPDATED = "zzz_concord_version_insert", "zzz_concord_version_update"
_NAMES = f"({literal(INSERTED)}, {literal(UPDATED)})"
#: pg_trigger.tgtype: before each row, of an insert and of an update.
_TYPES = {INSERTED: 1 + 2 + 4, UPDATED: 1 + 2 + 16}
#: A UUID's text.
_LENGTH = 36

STATEMENTS = [
    """
CREATE OR REPLACE FUNCTION concord.new_version() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[0], gen_random_uuid()));
END $$""",
    "REVOKE ALL ON FUNCTION concord.new_version() FROM PUBLIC",
]

#: A table and its column.
Versioned = tuple[Table, str]


def problems(table: Table, name: str, key: Sequence[str]) -> Iterator[str]:
    """Why this column cannot hold a version, each one line."""
    column = next((each for each in table.columns if each.name == name), None)
    if column is None:
        yield f"has no column {name}; add it as uuid, or correct `version_column`"
    elif name in key:
        yield f"has {name} in its key, which would change with each update; correct `version_column`"
    elif column.generated or not _holds_uuids(column):
        yield f"has the column {name} of type {column.type.sql}; a version column is uuid, text or varchar(36)"


def _holds_uuids(column: Column) -> bool:
    """By type and width (S4-147)."""
    if not column.type.built_in or column.type.kind != "b":
        return False
    width = re.fullmatch(r"character varying\((\d+)\)", column.type.sql)
    if width is not None:
        return int(width[1]) >= _LENGTH
    return column.type.sql in {"uuid", "text", "character varying"}


def statements(connection: Connection, wanted: Sequence[Versioned]) -> Iterator[str]:
    """Make what these tables lack, and take the triggers of all others; idempotent."""
    found = _found(connection)
    for table, column in wanted:
        if _fault(found, table, column):
            yield from _made(table, column)
    columns = {table.oid for table, _ in wanted}
    for oid, trigger in sorted(found.keys()):
        if oid not in columns:
            yield f"DROP TRIGGER IF EXISTS {quote(trigger)} ON {found[oid, trigger][0]}"


def _made(table: Table, column: str) -> list[str]:
    """A user's insert may bring a value of its own."""
    calls = f"EXECUTE FUNCTION concord.new_version({literal(column)})"
    missing = f"WHEN (NEW.{quote(column)} IS NULL)"
    return [
        f"CREATE OR REPLACE TRIGGER {INSERTED} BEFORE INSERT ON {table.sql} FOR EACH ROW {missing} {calls}",
        f"CREATE OR REPLACE TRIGGER {UPDATED} BEFORE UPDATE ON {table.sql} FOR EACH ROW {calls}",
        f"ALTER TABLE {table.sql} ENABLE TRIGGER {INSERTED}, ENABLE TRIGGER {UPDATED}",
    ]


def deviations(connection: Connection, wanted: Sequence[Versioned]) -> Iterator[str]:
    """Whatever keeps these columns from being maintained, each one line."""
    found = _found(connection) if wanted else {}
    for table, column in wanted:
        if _fault(found, table, column):
            yield f"{table.name} lacks a trigger of its version column {column}, or has it altered"


#: By table and trigger: the table as SQL, and what the trigger is.
_Found = dict[tuple[int, str], tuple[str, list[object]]]


def _found(connection: Connection) -> _Found:
    found = rows(
        connection,
        "SELECT t.tgrelid::bigint, t.tgname, n.nspname, c.relname, t.tgenabled::text, t.tgtype::int,"
        " convert_from(substring(t.tgargs FROM 1 FOR length(t.tgargs) - 1), getdatabaseencoding()),"
        " p.pronamespace = to_regnamespace('concord') AND p.proname = 'new_version'"
        " AND t.tgattr = ''::int2vector FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid"
        f" WHERE NOT t.tgisinternal AND t.tgname IN {_NAMES}",
    )
    return {(oid, name): (qualified(schema, table), told) for oid, name, schema, table, *told in found}


def _fault(found: _Found, table: Table, column: str) -> bool:
    for name, kind in _TYPES.items():
        _, told = found.get((table.oid, name), ("", []))
        if told != ["O", kind, column, True]:
            return True
    return False
