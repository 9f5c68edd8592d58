"""Generated columns of tables of which the log brings rows as they were (REPLICA IDENTITY FULL).

PostgreSQL 18 refuses every update and delete of such a table where one of its publications leaves a generated column
out. Those that are stored can be published. Those that are computed when they are read (VIRTUAL) cannot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import PublishedTable

#: The first version that can publish them, and that refuses updates where they are not published.
_FIRST = 18_00_00


def as_published(connection: Connection, tables: Sequence[PublishedTable]) -> tuple[PublishedTable, ...]:
    """The tables of one publication as the log of this server brings them."""
    published = _are_published(connection, tables)
    return tuple(replace(each, computed=published) for each in tables)


def _are_published(connection: Connection, tables: Sequence[PublishedTable]) -> bool:
    return connection.info.server_version >= _FIRST and any(map(_stored, tables))


def _stored(table: PublishedTable) -> bool:
    return table.full and any(each.generated and not each.virtual for each in table.table.columns)


def option(connection: Connection, name: str, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """The statement that has the publication bring them, or not."""
    if connection.info.server_version >= _FIRST:
        chosen = "stored" if _are_published(connection, tables) else "none"
        yield f"ALTER PUBLICATION {quote(name)} SET (publish_generated_columns = {chosen})"


def problems(
    connection: Connection, tables: Sequence[PublishedTable], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Why PostgreSQL would refuse the updates of these tables once they are published; each one line, with its table.

    A table has the name that the replication set gives it. `names`: all publications that are provisioned together.
    """
    if connection.info.server_version < _FIRST:
        return
    for each in (table for table in tables if table.full):
        virtual = ", ".join(column.name for column in each.table.columns if column.virtual)
        if virtual:
            yield (
                each.name,
                f"{each.table.name}: its log must bring rows as they were (REPLICA IDENTITY FULL), with which"
                f" PostgreSQL refuses every update of a published table with a virtual column ({virtual}); make it"
                " STORED, or replicate by capture: triggers",
            )
        for (other,) in _others(connection, each, names) if _stored(each) else ():
            yield (
                each.name,
                f"{each.table.name}: its log must bring rows as they were (REPLICA IDENTITY FULL), with which"
                f" PostgreSQL refuses its updates as long as the publication {other} leaves its generated columns out;"
                f" say ALTER PUBLICATION {other} SET (publish_generated_columns = stored)",
            )


def _others(connection: Connection, table: PublishedTable, names: Collection[str]) -> list[tuple[str]]:
    """Publications of the table other than `names` that leave its generated columns out."""
    known = ", ".join(map(literal, names))
    return rows(
        connection,
        "SELECT DISTINCT quote_ident(p.pubname) FROM pg_publication p JOIN pg_publication_tables t"
        f" ON t.pubname = p.pubname WHERE p.pubname NOT IN ({known}) AND p.pubgencols <> 's'"
        " AND (p.pubupdate OR p.pubdelete)"
        f" AND to_regclass(format('%I.%I', t.schemaname, t.tablename)) = {table.table.oid} ORDER BY 1",
    )
