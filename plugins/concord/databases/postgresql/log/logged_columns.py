"""Tables as they were when their operations were logged: the log says their columns, and the catalogue the types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from psycopg.rows import dict_row

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Table, columns_by_table
from concord.databases.postgresql.facts.catalogue_queries import columns_query, types_query
from concord.databases.postgresql.facts.connection import Connection, answers
from concord.databases.postgresql.log.frames import Read
from concord.databases.postgresql.log.pgoutput import LoggedColumn, Relation, decode
from concord.databases.postgresql.log.published import Published, PublishedTable
from concord.messages.errors import StructureChanged


def first_relations(messages: Iterable[bytes | Read | None], wanted: Collection[int]) -> dict[int, Relation]:
    """Of these tables, by oid: each as the log has it first."""
    found: dict[int, Relation] = {}
    for message in messages:
        if isinstance(message, bytes) and message[:1] == b"R":
            said = decode(message)
            if isinstance(said, Relation) and said.oid in wanted:
                found.setdefault(said.oid, said)
                if len(found) == len(wanted):
                    break
    return found


def as_logged(connection: Connection, published: Published, logged: Mapping[int, Relation]) -> Published:
    """The tables with the columns that the log has of them. Raises StructureChanged where one has no key there."""
    return replace(
        published,
        tables=tuple(
            _as_logged(connection, each, relation)
            if (relation := logged.get(each.table.oid)) and not each.is_logged_as(relation)
            else each
            for each in published.tables
        ),
    )


def _as_logged(connection: Connection, published: PublishedTable, relation: Relation) -> PublishedTable:
    key = _key(published, relation)
    table = _table(connection, published.table, relation.columns)
    known = {column.name for column in table.columns}
    if not key or not {*key, *(each.name for each in relation.columns)} <= known:
        raise StructureChanged(
            f"{published.name} had other key columns, or columns of a type that was dropped since, when operations that"
            " wait in the publisher's log were committed; initialize the replication again with `replace`"
        )
    return replace(published, table=table, key=key, altered=True)


def _key(published: PublishedTable, relation: Relation) -> tuple[str, ...]:
    """Its replica identity says it, but for FULL: there a renamed column has the place that it has now.

    At the subscriber the rows of another column would not be unique, and it refuses them.
    """
    names = [each.name for each in relation.columns]
    if not relation.whole:
        return tuple(each.name for each in relation.columns if each.of_key)
    if {*published.key} <= {*names}:
        return published.key
    now = [column.name for column in published.logged]
    places = [now.index(name) for name in published.key]
    return tuple(names[place] for place in places if place < len(names))


def _table(connection: Connection, table: Table, logged: Sequence[LoggedColumn]) -> Table:
    query = columns_query(f"ARRAY[{table.oid}::oid]", _attributes(table, logged))
    [found] = answers(connection, query, row_factory=dict_row)
    own_types = {row["type_oid"] for row in found if not row["plain"]}
    lookup = [types_query(own_types)] if own_types else []
    columns = columns_by_table(found, *answers(connection, *lookup, row_factory=dict_row))
    return replace(table, columns=tuple(columns.get(table.oid, [])))


def _attributes(table: Table, logged: Sequence[LoggedColumn]) -> str:
    """As `pg_attribute` has them. A column that is generated now was generated then."""
    generated = {column.name for column in table.columns if column.generated}
    rows = ", ".join(
        f"({place}, {literal(each.name)}, {each.type_oid}::bigint, {each.modifier},"
        f" {literal('s' if each.name in generated else '')})"
        for place, each in enumerate(logged, 1)
    )
    return (
        f"(SELECT {table.oid}::oid AS attrelid, l.place::int2 AS attnum, l.name::name AS attname,"
        " l.type::oid AS atttypid, l.modifier::int AS atttypmod, false AS attnotnull, l.generated AS attgenerated,"
        " '' AS attidentity, 0::oid AS attcollation, false AS atthasdef, false AS atthasmissing,"
        " NULL::text AS attmissingval, false AS attisdropped, '' AS xmin"
        f" FROM (VALUES {rows}) l (place, name, type, modifier, generated))"
    )
