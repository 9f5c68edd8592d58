"""Rows that can give up no column: a CHECK, a domain or a generated column of their table takes no NULL there.

They are tried in a temporary table that has the table's own constraints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.rows.shape import Shape
from concord.rules.unique_rule import Loss


def among(connection: Connection, shape: Shape, lost: Iterable[Loss], images: str) -> set[str]:
    """The keys of those rows that are to give up columns and cannot. `images`: a table of `key` and `image`."""
    given_up = _given_up(lost)
    if not given_up:
        return set()
    run(
        connection,
        f"CREATE TEMPORARY TABLE IF NOT EXISTS {_trial(shape)} (LIKE {shape.table.sql} INCLUDING CONSTRAINTS"
        " INCLUDING DEFAULTS INCLUDING GENERATED) ON COMMIT DROP",
    )
    firm = set[str]()
    for columns, keys in given_up.items():
        insert = _inserting(shape, columns, images)
        if not _takes(connection, insert, keys):
            firm |= {key for key in keys if not _takes(connection, insert, [key])}
    return firm


def _given_up(lost: Iterable[Loss]) -> Mapping[frozenset[str], list[str]]:
    """The rows that stay, by all columns that each of them gives up."""
    columns = defaultdict[str, set[str]](set)
    for each in lost:
        if each.gives_up is not None:
            columns[each.row].add(each.gives_up)
    rows = defaultdict[frozenset[str], list[str]](list)
    for row, names in columns.items():
        rows[frozenset(names)].append(row)
    return rows


def _trial(shape: Shape) -> str:
    return f"trial_{shape.table.oid}"


def _inserting(shape: Shape, given_up: Collection[str], images: str) -> str:
    names = ", ".join(each.sql for each in shape.columns)
    values = ", ".join(
        f"{'NULL' if each.name in given_up else f'(x.image ->> {literal(each.name)})'}::{each.type.sql}"
        for each in shape.columns
    )
    return f"INSERT INTO pg_temp.{_trial(shape)} ({names}) SELECT {values} FROM {images} x"


def _takes(connection: Connection, insert: str, keys: Collection[str]) -> bool:
    try:
        with connection.transaction():
            run(connection, f"{insert} WHERE x.key = ANY (ARRAY[{', '.join(map(literal, keys))}])")
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        return False
    return True
