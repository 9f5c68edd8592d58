"""Concord's own tables that travel beside queued ones: their row versions, and the compensations (S3-01, S3-30).

A row's version before and after a change stands in the same transaction as the change: triggers write it there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concord.databases.contract.quoting import qualified, shortened
from concord.databases.postgresql.entries import staging
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.databases.postgresql.queued import compensation
from concord.messages.errors import NotProvisioned
from concord.tables.replication_set import ReplicatedTable, TableName

#: The version itself is the first three: no two changes of a row share them.
VERSION = ("origin", "changed_at", "derived", "vector", "deleted", "born")
#: The transaction that made it: at each site another one.
POSITION = "position"


def names(wanted: Sequence[ReplicatedTable]) -> list[TableName]:
    """Of one site: the same at every other."""
    found = [TableName(schema_name="concord", name=shortened(each.name)) for each in wanted]
    return [*found, compensation.NAME]


def relations(wanted: Sequence[ReplicatedTable]) -> list[str]:
    """The shadow tables, as SQL."""
    return [qualified(each.schema_name, each.name) for each in names(wanted)[:-1]]


def published(
    site: str,
    wanted: Sequence[ReplicatedTable],
    rows: Sequence[PublishedTable],
    tables: Mapping[TableName, Table],
) -> Published:
    """All that travels of these `rows`. Raises NotProvisioned."""
    *shadows, compensations = [_existing(site, tables, name) for name in names(wanted)]
    return Published((*rows, *map(_versions, rows, shadows), _compensations(compensations)))


def _versions(rows: PublishedTable, shadow: Table) -> PublishedTable:
    key = tuple(column.name for column in shadow.columns[: len(rows.key)])
    return PublishedTable(
        f"versions of {rows.name}",
        shadow,
        key,
        images=True,
        travelling=frozenset((*key, *VERSION)),
        kind=Kind.VERSIONS,
    )


def _compensations(table: Table) -> PublishedTable:
    return PublishedTable("compensations", table, table.primary_key, kind=Kind.COMPENSATIONS)


def subscribed(
    site: str,
    of_rows: Sequence[staging.ReplicatedTable],
    source: Published,
    tables: Mapping[TableName, Table],
) -> tuple[staging.ReplicatedTable, ...]:
    """The same at the site that replays them. Raises NotProvisioned."""
    made = [*of_rows]
    for place, each in enumerate(source.tables[len(of_rows) :], len(of_rows)):
        table = each.table if each.kind is Kind.CALLS else _existing(site, tables, each.table.name)
        columns = tuple(table.column(column.name) for column in each.columns)
        made.append(
            staging.ReplicatedTable(each.name, place, table, columns, each.key, each.before, each.kind)
        )
    return tuple(made)


def _existing(site: str, tables: Mapping[TableName, Table], name: TableName) -> Table:
    table = tables.get(name)
    if table is None:
        raise NotProvisioned(f"{site}: {name} is missing, which queued updating needs; run `provision`")
    return table
