"""Whether a table is still as it was described: its file, its columns, their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from psycopg.rows import dict_row

from concord.databases.postgresql.facts.catalogue import Table, casts_of, columns_by_table, fingerprint
from concord.databases.postgresql.facts.catalogue_queries import STORAGE, columns_query, named, types_query
from concord.databases.postgresql.facts.connection import Connection, answers
from concord.tables.replication_set import TableName


class Storage(NamedTuple):
    """The storage of a table: it differs after the table is recreated or rewritten, or its columns or types altered."""

    oid: int
    file: int
    structure: str
    casts: frozenset[str]


def altered_since(connection: Connection, tables: Sequence[Table]) -> set[TableName]:
    """Those of `tables` whose columns, files or casts are others by now."""
    now = read_storage(connection, tables)
    return {
        table.name
        for table in tables
        if now.get(table.name) != Storage(table.oid, table.storage, table.structure, table.casts)
    }


def read_storage(connection: Connection, tables: Sequence[Table], *first: str) -> dict[TableName, Storage]:
    """Of those that still exist among `tables`, once the statements `first` are done, in one round trip.

    A type that the tables did not have before is not looked up: its column has changed in any case.
    """
    if not tables:
        return {}
    relation, oids = named([table.name for table in tables])
    own = frozenset[int]().union(*(table.own_types for table in tables))
    asked = [STORAGE + relation, columns_query(oids), *([types_query(own)] if own else [])]
    heads, *described = answers(connection, *first, *asked, row_factory=dict_row)[len(first) :]
    columns = columns_by_table(*described)
    return {
        TableName(schema_name=head["schema_name"], name=head["name"]): Storage(
            head["oid"], head["storage"], fingerprint(its), casts_of(its)
        )
        for head in heads
        for its in [columns.get(head["oid"], [])]
    }
