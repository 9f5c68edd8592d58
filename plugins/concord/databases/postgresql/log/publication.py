"""The publication of a replication set at its publisher: which tables and columns its log brings."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, quote, shortened
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.own_schema import SCHEMA
from concord.databases.postgresql.log import generated_columns
from concord.databases.postgresql.log.published import PublishedTable

_LEVELS = "concord.replay"
#: The name of the replication is its key, and all that a reader of the log asks it for.
LEVEL_ROW = f"{_LEVELS} (replication)"

#: Condition on a row `p` of `pg_publication`: all operations of the tables themselves are published.
WHOLE = "p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND NOT p.pubviaroot"

#: The same of its stored generated columns, which it may bring from PostgreSQL 18 on.
_COMPUTED = "coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false)"


@dataclass(frozen=True, slots=True)
class Own:
    """Concord's own tables that a publication brings besides, as SQL."""

    whole: tuple[str, ...] = ()  #: with rows as they were
    plain: tuple[str, ...] = ()
    #: The level's row, where both sites write: a transaction that begins with it was replayed (S2-09).
    level: bool = False


NOTHING = Own()


def publication_name(replication_set: str) -> str:
    """One for each replication set that is published here; a longer name than PostgreSQL's is cut and told apart."""
    return shortened(f"concord_{replication_set}")


def statements(
    name: str,
    tables: Sequence[PublishedTable],
    known: bool,
    whole: Collection[int] = (),
    own: Own = NOTHING,
) -> list[str]:
    """Make it, or bring it to these tables. Its installer owns them. `whole`: those that Concord made FULL."""
    level = [LEVEL_ROW] if own.level else []
    listed = ", ".join([*map(_listed, tables), *own.whole, *own.plain, *level])
    identities = [
        f"ALTER TABLE {each.table.sql} REPLICA IDENTITY {'FULL' if each.full else 'DEFAULT'}"
        for each in tables
        if each.full or each.table.oid in whole
    ]
    made = "ALTER PUBLICATION {} SET TABLE {}" if known else "CREATE PUBLICATION {} FOR TABLE {}"
    repaired = [published_whole(name)] if known else []
    mark = _filters_mark(tables)
    noted = "NULL" if mark is None else literal(mark)
    return [
        *identities,
        *(f"ALTER TABLE {each} REPLICA IDENTITY FULL" for each in own.whole),
        *repaired,
        made.format(quote(name), listed),
        f"COMMENT ON PUBLICATION {quote(name)} IS {noted}",
    ]


def _listed(table: PublishedTable) -> str:
    """PostgreSQL refuses updates of a table with a list of columns where its replica identity is FULL.

    It lets no owner drop a listed column or give it another type. A table that travels whole has no list.

    By the filter PostgreSQL itself makes a delete of an update that leaves it, and an insert of one that enters it.
    """
    chosen = f" ({', '.join(column.sql for column in table.columns)})" if table.listed else ""
    return f"{table.table.sql}{chosen}{'' if table.where is None else f' WHERE ({table.where})'}"


def _filters_mark(tables: Sequence[PublishedTable]) -> str | None:
    """The publication's own memory of its filters: PostgreSQL tells them in words of its own."""
    filters = sorted(f"{each.table.sql} {each.where}" for each in tables if each.where is not None)
    return f"concord: filters {hashlib.sha256(repr(filters).encode()).hexdigest()[:16]}" if filters else None


def is_known(connection: Connection, name: str) -> bool:
    """Is there a publication of that name?"""
    return bool(rows(connection, f"SELECT 1 FROM pg_publication WHERE pubname = {literal(name)}"))


def is_whole(connection: Connection, name: str) -> bool:
    """Is there one, and does it bring every operation?"""
    return bool(
        rows(connection, f"SELECT 1 FROM pg_publication p WHERE pubname = {literal(name)} AND {WHOLE}")
    )


def whole_identities(found: Found) -> set[int]:
    """The tables whose replica identity is FULL for the publication's filter, by oid."""
    return {oid for oid, each in found.members.items() if each.full and each.filtered}


def published_whole(name: str) -> str:
    """Statement: all operations of its tables are published, where somebody had it otherwise."""
    options = "publish = 'insert, update, delete, truncate', publish_via_partition_root = false"
    altered = f"ALTER PUBLICATION {quote(name)} SET ({options})"
    block = f"""
BEGIN
  IF EXISTS (SELECT FROM pg_publication p WHERE p.pubname = {literal(name)} AND NOT ({WHOLE})) THEN
    {altered};
  END IF;
END"""
    return f"DO {literal(block)}"


def own_tables(own: Own) -> list[str]:
    """All tables of Concord's that it brings, as SQL."""
    return [*own.whole, *own.plain, *([_LEVELS] if own.level else [])]


@dataclass(frozen=True, slots=True)
class Member:
    """One table of a publication, as it is there."""

    name: str
    is_own: bool  #: Concord's
    unlisted: bool  #: with all columns
    full: bool  #: with rows as they were
    filtered: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A publication as it is."""

    name: str
    whole: bool  #: all operations are published
    by_schema: bool  #: so are tables that nobody has named
    computed: bool  #: and their stored generated columns
    mark: str | None
    members: dict[int, Member]  #: by oid

    @property
    def whole_members(self) -> set[int]:
        """The tables that it has with all of their columns and with rows as they were.

        Another publication of the table may be what needs that.
        """
        return {oid for oid, each in self.members.items() if each.unlisted and each.full}


def find(connection: Connection, name: str) -> Found:
    """One that is not there has no members."""
    found = rows(
        connection,
        f"SELECT {WHOLE}, EXISTS (SELECT FROM pg_publication_namespace s WHERE s.pnpubid = p.oid), {_COMPUTED},"
        " obj_description(p.oid, 'pg_publication'), r.prrelid::bigint,"
        f" format('%s.%s', n.nspname, c.relname), n.nspname = {literal(SCHEMA)}, r.prattrs IS NULL,"
        " c.relreplident = 'f', r.prqual IS NOT NULL, (SELECT coalesce(array_agg(a.attname::text), '{}')"
        " FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum > 0 AND NOT a.attisdropped"
        f" AND (a.attgenerated = '' OR a.attgenerated = 's' AND {_COMPUTED} AND r.prattrs IS NULL)"
        " AND coalesce(a.attnum = ANY (r.prattrs::int2[]), true))"
        " FROM pg_publication p LEFT JOIN (pg_publication_rel r JOIN pg_class c ON c.oid = r.prrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace) ON r.prpubid = p.oid"
        f" WHERE p.pubname = {literal(name)} ORDER BY 6",
    )
    if not found:
        return Found(name, whole=True, by_schema=False, computed=False, mark=None, members={})
    whole, by_schema, computed, mark = found[0][:4]
    members = {}
    for _, _, _, _, oid, table, is_own, unlisted, full, filtered, columns in found:
        if oid is not None:
            members[oid] = Member(table, is_own, unlisted, full, filtered, tuple(sorted(columns)))
    return Found(name, whole, by_schema, computed, mark, members)


def deviations(
    connection: Connection, found: Found, tables: Sequence[PublishedTable], own: Own = NOTHING
) -> Iterator[str]:
    """The parts of these tables that the publication lacks, and tables that it has besides; each one line.

    A table that was dropped and made again has left it without a word.
    """
    name = found.name
    yield from _own_deviations(connection, name, own)
    yield from _surplus(found, {each.table.oid for each in tables})
    if own.level and _LEVELS not in {each.name for each in found.members.values()}:
        yield f"{_LEVELS} is not in the publication {name}"
    if not found.whole:
        listed = ", ".join(str(each.table.name) for each in tables)
        yield f"the publication {name} does not publish every operation of its tables ({listed})"
    if found.members and found.computed != any(each.computed for each in tables):
        lacks = "publishes" if found.computed else "does not publish"
        yield f"the publication {name} {lacks} generated columns"
    for each in tables:
        member = found.members.get(each.table.oid)
        if member is None:
            yield f"{each.table.name} is not in the publication {name}"
        elif not (member.unlisted or each.listed or each.full):
            yield (
                f"{each.table.name} has its columns listed in the publication {name}, so that PostgreSQL lets nobody"
                " drop them or give them another type"
            )
        elif list(member.columns) != sorted(column.name for column in each.logged):
            yield f"{each.table.name} has other columns than the publication {name}"
        elif member.filtered != (each.where is not None) or (
            member.filtered and found.mark != _filters_mark(tables)
        ):
            yield f"{each.table.name} has another row filter than the publication {name}"
        elif each.full and not (member.full and member.unlisted):
            yield f"{each.table.name} is published without its rows as they were (REPLICA IDENTITY FULL)"


def refused_identities(found: Found, tables: Sequence[PublishedTable]) -> Iterator[str]:
    """The published tables whose users can update nothing, each one line."""
    for each in tables:
        member = found.members.get(each.table.oid)
        if member is not None and member.full and each.listed:
            yield _full(each)


def _full(table: PublishedTable) -> str:
    return (
        f"{table.table.name}: its replica identity is FULL, with which PostgreSQL refuses updates of a published table"
        " whose columns are listed; say ALTER TABLE … REPLICA IDENTITY DEFAULT"
    )


def _surplus(found: Found, wanted: Collection[int]) -> Iterator[str]:
    """Its log would bring operations that no run can replay."""
    for oid, each in found.members.items():
        if not each.is_own and oid not in wanted:
            yield f"{each.name} is in the publication {found.name}, and no longer in its replication set"
    if found.by_schema:
        yield f"the publication {found.name} has the tables of a whole schema, and not those of its replication set"


def _own_deviations(connection: Connection, name: str, own: Own) -> Iterator[str]:
    for table in (*own.whole, *own.plain):
        found = rows(
            connection,
            "SELECT c.relreplident = 'f' FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
            f" JOIN pg_class c ON c.oid = r.prrelid WHERE p.pubname = {literal(name)}"
            f" AND r.prrelid = to_regclass({literal(table)})",
        )
        if not found:
            yield f"{table} is not in the publication {name}"
        elif table in own.whole and not found[0][0]:
            yield f"{table} is published without its rows as they were (REPLICA IDENTITY FULL)"


def identity_problems(
    connection: Connection, name: str, tables: Sequence[PublishedTable], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Of a table without a replica identity, a publication makes PostgreSQL refuse every update and delete.

    So does another one that filters by columns outside of it. Where the identity is FULL, so does one that lists
    columns or leaves generated ones out. Such an identity is Concord's own where the publication filters the table.
    `names`: all that are provisioned together. Each line comes with the name that the replication set
    gives the table.
    """
    yield from generated_columns.problems(connection, tables, names)
    known = ", ".join(map(literal, names))
    for each in tables:
        found = rows(
            connection,
            "SELECT c.relreplident = 'f' AND NOT EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p"
            f" ON p.oid = r.prpubid WHERE r.prrelid = c.oid AND p.pubname = {literal(name)} AND r.prqual IS NOT NULL),"
            " (SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[]) WHERE i.indrelid = c.oid AND"
            " CASE WHEN c.relreplident IN ('d', 'f') THEN i.indisprimary"
            " ELSE c.relreplident = 'i' AND i.indisreplident END),"
            " (SELECT string_agg(quote_ident(p.pubname), ', ') FROM pg_publication_rel r JOIN pg_publication p"
            f" ON p.oid = r.prpubid WHERE r.prrelid = c.oid AND r.prqual IS NOT NULL AND p.pubname NOT IN ({known})"
            f" AND c.relreplident = 'f') FROM pg_class c WHERE c.oid = {each.table.oid}",
        )
        (somebodys, identity, filtering) = found[0]
        if filtering and not each.full:
            yield (
                each.name,
                f"{each.table.name}: the publication {filtering} filters it and needs its rows as they were, and no"
                f" replication here does; DROP PUBLICATION {filtering}, or keep the replication that has it",
            )
        elif somebodys and each.listed:
            yield each.name, _full(each)
        elif not each.full and set(identity or ()) != set(each.key):
            yield (
                each.name,
                f"{each.table.name}: its replica identity is not its replication key ({', '.join(each.key)});"
                " make that the primary key, or say ALTER TABLE … REPLICA IDENTITY USING INDEX …",
            )
