"""Why the marks that an application keeps on a table's rows cannot be relied on at a site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.capture.marks import SiteMarks, marks_at, own_names, view_comment
from concord.databases.postgresql.facts import ownership
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.tables.replication_set import Marks, ReplicatedTable


def problems(connection: Connection, site: str, wanted: ReplicatedTable, table: Table) -> Iterator[str]:
    """Each reason, one line that says what to do; silent for a table that triggers watch."""
    marks, where = wanted.tracking, f"{site}: {wanted.at_site(site)}"
    if marks is None:
        return
    found = {column.name: column for column in table.columns}
    names = own_names(wanted, marks, site)
    for name in names:
        if name not in found:
            yield f"{where} has no column {name}, which tracking names; add it, or correct the configuration"
    known = marks_at(wanted, site, table)
    if known is None:
        return
    changed_at, deleted = (found[name] for name in names)
    yield from (
        f"{where} {text}" for text in _column_problems(changed_at, deleted, table.key_of(wanted.key_at(site)))
    )
    yield from (f"{where} {text}" for text in _zone_problems(connection, site, marks, changed_at))
    yield from (f"{where} {text}" for text in _index_problems(connection, table, changed_at))
    yield from _view_problems(connection, site, known, table)


def _column_problems(changed_at: Column, deleted: Column, key: tuple[str, ...]) -> Iterator[str]:
    if changed_at.type.kind != "b" or changed_at.type.root not in ("timestamp", "timestamptz"):
        yield f"has the mark {changed_at.name} of type {changed_at.type.sql}; it must be a timestamp"
    if deleted.type.sql != "boolean":
        yield f"has the delete flag {deleted.name} of type {deleted.type.sql}; it must be boolean"
    for column in (changed_at, deleted):
        if not column.not_null:
            yield f"has the nullable mark {column.name}: a row without it would never be sent; set it NOT NULL"
        if column.generated:
            yield f"has the generated column {column.name}, which no application keeps; name another one"
        if column.name in key:
            yield f"has {column.name} in its key, which would change with every edit; choose another key"


def _zone_problems(connection: Connection, site: str, marks: Marks, changed_at: Column) -> Iterator[str]:
    """Local time of nobody knows where is refused, never guessed (F19)."""
    zone = marks.time_zone.get(site)
    if changed_at.type.root == "timestamp" and zone is None:
        yield (
            f"has the mark {changed_at.name} without time zone; say what it is in:"
            f" tracking: {{time_zone: {{{site}: Africa/Johannesburg}}}}, or UTC"
        )
    elif changed_at.type.root == "timestamptz" and zone is not None:
        yield f"has the mark {changed_at.name} with time zone; remove {site} from tracking.time_zone"
    elif zone is not None and not _knows_zone(connection, zone):
        yield f"has its marks in {zone}, a time zone that this database does not know; correct tracking.time_zone"


def _knows_zone(connection: Connection, zone: str) -> bool:
    try:
        rows(connection, f"SELECT now() AT TIME ZONE {literal(zone)}")
    except psycopg.errors.InvalidParameterValue:
        return False
    return True


def _index_problems(connection: Connection, table: Table, changed_at: Column) -> Iterator[str]:
    """Registering costs what was marked lately, not what exists: for that the mark needs an index."""
    usable = rows(
        connection,
        f"""
SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
  JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
 WHERE i.indrelid = {table.oid} AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree'
   AND a.attname = {literal(changed_at.name)}""",
    )
    if not usable:
        yield (
            f"has no index on the mark {changed_at.name}, so that every run would read the whole table;"
            f" CREATE INDEX ON {table.sql} ({quote(changed_at.name)})"
        )


def _view_problems(connection: Connection, site: str, marks: SiteMarks, table: Table) -> Iterator[str]:
    """A relation of that name that is not Concord's own is not replaced; columns of a view cannot be renamed."""
    if marks.view is None:
        return
    name = literal(qualified(marks.view.schema_name, marks.view.name))
    taken = rows(
        connection,
        "SELECT o.rolname FROM pg_class c JOIN pg_roles o ON o.oid = c.relowner"
        f" WHERE c.oid = to_regclass({name}) AND (NOT {ownership.is_concords('o')}"
        f" OR obj_description(c.oid, 'pg_class') IS DISTINCT FROM {literal(view_comment(table.name))})",
    )
    for (owner,) in taken:
        yield (
            f"{site}: {marks.view} exists, belongs to {owner} and is not Concord's; name another view in tracking, or"
            " drop it"
        )
    shown = [
        column
        for (column,) in rows(
            connection,
            f"SELECT attname FROM pg_attribute WHERE attrelid = to_regclass({name}) AND attnum > 0"
            " AND NOT attisdropped ORDER BY attnum",
        )
    ]
    if not taken and shown != [column.name for column in table.columns][: len(shown)]:
        yield (
            f"{site}: {table.name} has other columns than its view {marks.view}, and PostgreSQL renames none of a view;"
            f" DROP VIEW {marks.view}, and run `provision`, which makes it anew"
        )
    schema = literal(marks.view.schema_name)
    if not rows(connection, f"SELECT 1 FROM pg_namespace WHERE nspname = {schema}"):
        yield f"{site}: there is no schema {marks.view.schema_name} for the view {marks.view}; create it"


def tracked_otherwise(
    site: str, wanted: ReplicatedTable, table: Table | None, known: Mapping[str, object]
) -> Iterator[str]:
    """A table whose changes were found in another way until now: what its shadow holds would be misread.

    `known` is what the site was told when the table was provisioned; empty for triggers.
    """
    if table is None:
        return
    marks = marks_at(wanted, site, table)
    now = {} if marks is None else marks.remembered
    if _columns(now) != _columns(known):
        yield (
            f"{site}: the changes of {wanted.at_site(site)} were found by {_said(known)} when it was provisioned, and"
            f" are to be found by {_said(now)} now; remove the site (provision --remove), provision and initialize it"
            " again"
        )


def _columns(tracking: Mapping[str, object]) -> tuple[object, object]:
    return (tracking.get("changed_at"), tracking.get("deleted"))


def _said(tracking: Mapping[str, object]) -> str:
    changed_at, deleted = _columns(tracking)
    return "triggers" if changed_at is None else f"the marks {changed_at} and {deleted}"
