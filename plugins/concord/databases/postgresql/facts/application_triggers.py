"""Triggers of the application's own that fire although Concord writes (S0-17 to S0-19, F49).

An ordinary trigger is silent then, replica role sees to it: what it does at one site comes to the others as rows. One
that is enabled ALWAYS or REPLICA would do it a second time, unless it asks for the setting that every write of ours
carries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.tables.replication_set import TableName

#: The setting that a trigger asks for, in its WHEN or in its function: 'on' while Concord writes.
GUARD = "concord.applying"

_ADVICE = f"make it an ordinary trigger (ENABLE TRIGGER), or let it do nothing while {GUARD} is 'on'"


@dataclass(frozen=True, slots=True)
class Unguarded:
    """One trigger that fires for Concord's writes and does not ask whose they are."""

    name: str
    table: TableName
    enabled: str  #: ALWAYS or REPLICA
    before: bool  #: it can change the row that is being written


def refusals(
    connection: Connection, site: str, tables: Mapping[TableName, Table]
) -> Iterator[tuple[TableName, str]]:
    """Those that can change what arrives: then the sites would never agree. Each line comes with its table."""
    yield from _told(
        connection, site, tables, f"which may change rows that Concord writes; {_ADVICE}", before=True
    )


def changing(connection: Connection, site: str, tables: Mapping[TableName, Table]) -> Iterator[str]:
    """Those that can change what arrives, where another site's rows are only copied. Each one line, a notice."""
    effect = "which may change rows that are replayed; they then differ from the publisher's. Else"
    told = _told(connection, site, tables, f"{effect} {_ADVICE}", before=True)
    yield from (line for _, line in told)


def notices(connection: Connection, site: str, tables: Mapping[TableName, Table]) -> Iterator[str]:
    """Those that act a second time on what another site did."""
    effect = "which fires for what Concord writes too; if that repeats what it did at the other site,"
    told = _told(connection, site, tables, f"{effect} {_ADVICE}", before=False)
    yield from (line for _, line in told)


def _told(
    connection: Connection, site: str, tables: Mapping[TableName, Table], effect: str, *, before: bool
) -> Iterator[tuple[TableName, str]]:
    """A line for each trigger that fires then, with its table."""
    for each in _unguarded(connection, tables):
        if each.before is before:
            time = "BEFORE" if before else "AFTER"
            fires = f"{time}, ENABLE {each.enabled}"
            yield each.table, f"{site}: {each.table} has the trigger {each.name} ({fires}), {effect}"


def firing(connection: Connection, oids: Sequence[int]) -> set[int]:
    """The tables with any trigger that fires although Concord writes, whatever it does then."""
    query = (
        "SELECT tgrelid::bigint FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('A', 'R')"
        f" AND tgrelid = ANY (ARRAY[{', '.join(map(str, oids))}]::oid[])"
    )
    return {oid for (oid,) in rows(connection, query)}


def _unguarded(connection: Connection, tables: Mapping[TableName, Table]) -> list[Unguarded]:
    names = {table.oid: table.name for table in tables.values()}
    if not names:
        return []
    found = rows(
        connection,
        f"""
SELECT t.tgrelid::bigint, t.tgname, CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END, t.tgtype & 2 <> 0
  FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE NOT t.tgisinternal AND t.tgenabled IN ('A', 'R') AND t.tgrelid IN ({", ".join(map(str, names))})
   AND t.tgname NOT LIKE 'zz\\_concord\\_%' AND t.tgname NOT LIKE 'RI\\_concord\\_%' AND t.tgname <> 'concord_snapshot'
   AND strpos(pg_get_triggerdef(t.oid) || p.prosrc, {literal(GUARD)}) = 0
 ORDER BY 1, 2""",
    )
    return [Unguarded(name, names[oid], enabled, before) for oid, name, enabled, before in found]
