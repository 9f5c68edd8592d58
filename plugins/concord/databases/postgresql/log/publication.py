"""The publication of a replication set at its publisher: which tables and columns its log brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import PublishedTable

#: The name of the replication is its key, and all that a reader of the log asks it for.
LEVEL_ROW = "concord.replay (replication)"


def publication_name(replication_set: str) -> str:
    """One for each replication set that is published here."""
    return f"concord_{replication_set}"


def statements(name: str, tables: Sequence[PublishedTable], known: bool) -> list[str]:
    """Make it, or bring it to these tables. Its installer owns them.

    Where both sites write, the level's row is published too: a transaction that begins with it was replayed (S2-09).
    """
    level = [LEVEL_ROW] if any(each.images for each in tables) else []
    listed = ", ".join([*map(_listed, tables), *level])
    identities = [f"ALTER TABLE {each.table.sql} REPLICA IDENTITY FULL" for each in tables if each.images]
    if known:
        return [*identities, f"ALTER PUBLICATION {quote(name)} SET TABLE {listed}"]
    return [*identities, f"CREATE PUBLICATION {quote(name)} FOR TABLE {listed}"]


def _listed(table: PublishedTable) -> str:
    """PostgreSQL refuses updates of a table with images that has a list of columns."""
    if table.images:
        return table.table.sql
    return f"{table.table.sql} ({', '.join(column.sql for column in table.columns)})"


def is_known(connection: Connection, name: str) -> bool:
    """Is there a publication of that name?"""
    return bool(rows(connection, f"SELECT 1 FROM pg_publication WHERE pubname = {literal(name)}"))


def deviations(connection: Connection, name: str, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """The parts of these tables that the publication lacks, each one line.

    A table that was dropped and made again has left it without a word.
    """
    found = rows(
        connection,
        "SELECT r.prrelid, r.prattrs IS NULL AND c.relreplident = 'f', (SELECT array_agg(a.attname::text)"
        " FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum > 0 AND NOT a.attisdropped"
        " AND a.attgenerated = '' AND coalesce(a.attnum = ANY (r.prattrs::int2[]), true))"
        " FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid JOIN pg_class c ON c.oid = r.prrelid"
        f" WHERE p.pubname = {literal(name)}",
    )
    listed = {oid: (images, columns) for oid, images, columns in found}
    for each in tables:
        images, columns = listed.get(each.table.oid, (False, None))
        if columns is None:
            yield f"{each.table.name} is not in the publication {name}"
        elif sorted(columns) != sorted(column.name for column in each.columns):
            yield f"{each.table.name} has other columns than the publication {name}"
        elif each.images and not images:
            yield f"{each.table.name} is published without its rows as they were (REPLICA IDENTITY FULL)"


def identity_problems(connection: Connection, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """Of a table without a replica identity, a publication makes PostgreSQL refuse every update and delete."""
    for each in tables:
        found = rows(
            connection,
            "SELECT c.relreplident = 'f', (SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[]) WHERE i.indrelid = c.oid AND"
            " CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident ELSE false END)"
            f" FROM pg_class c WHERE c.oid = {each.table.oid}",
        )
        (has_all, identity) = found[0]
        if not (has_all or each.images) and set(identity or ()) != set(each.key):
            yield (
                f"{each.table.name}: its replica identity is not its replication key ({', '.join(each.key)});"
                " make that the primary key, or say ALTER TABLE … REPLICA IDENTITY USING INDEX …"
            )
