"""The publication of a replication set at its publisher: which tables and columns its log brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import PublishedTable


def publication_name(replication_set: str) -> str:
    """One for each replication set that is published here."""
    return f"concord_{replication_set}"


def statements(name: str, tables: Sequence[PublishedTable], known: bool) -> list[str]:
    """Make it, or bring it to these tables. Its installer owns them."""
    listed = ", ".join(f"{each.table.sql} ({', '.join(c.sql for c in each.columns)})" for each in tables)
    if known:
        return [f"ALTER PUBLICATION {quote(name)} SET TABLE {listed}"]
    return [f"CREATE PUBLICATION {quote(name)} FOR TABLE {listed}"]


def is_known(connection: Connection, name: str) -> bool:
    """Is there a publication of that name?"""
    return bool(rows(connection, f"SELECT 1 FROM pg_publication WHERE pubname = {literal(name)}"))


def deviations(connection: Connection, name: str, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """The parts of these tables that the publication lacks, each one line.

    A table that was dropped and made again has left it without a word.
    """
    found = rows(
        connection,
        "SELECT r.prrelid, (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a"
        " WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::int2[]))"
        " FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
        f" WHERE p.pubname = {literal(name)}",
    )
    listed = dict(found)
    for each in tables:
        if each.table.oid not in listed:
            yield f"{each.table.name} is not in the publication {name}"
        elif sorted(listed[each.table.oid] or ()) != sorted(column.name for column in each.columns):
            yield f"{each.table.name} has other columns than the publication {name}"


def identity_problems(connection: Connection, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """Of a table without a replica identity, a publication makes PostgreSQL refuse every update and delete."""
    for each in tables:
        found = rows(
            connection,
            "SELECT array_agg(a.attname::text) FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid"
            " AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[])"
            f" WHERE c.oid = {each.table.oid}",
        )
        if set(found[0][0] or ()) != set(each.key):
            yield (
                f"{each.table.name}: its replica identity is not its replication key ({', '.join(each.key)});"
                " make that the primary key, or say ALTER TABLE … REPLICA IDENTITY USING INDEX …"
            )
