"""Rows that can give up no column: a CHECK, a domain, a generated column or an index takes no NULL there.

They are written without these values, and taken back. So columns count that only this site has, and all that the
table demands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints import unique_rules
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import merge
from concord.rules.unique_rule import Loss

_BY_ANOTHER_ROW = (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation)


def among(connection: Connection, shape: Shape, lost: Iterable[Loss], images: str) -> set[str]:
    """The keys of those rows that are to give up columns and cannot.

    `images`: a table of `key`, `image`, and whether the row `arrives`.
    """
    firm = set[str]()
    for columns, keys in _given_up(lost).items():
        firm |= _refused(connection, shape, columns, images, keys)
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


def _refused(
    connection: Connection, shape: Shape, columns: Collection[str], images: str, keys: Sequence[str]
) -> set[str]:
    """Another row in the way says nothing, since it may move, unless the NULL has brought the row there."""
    chosen = f"x.key = ANY (ARRAY[{', '.join(map(literal, keys))}])"
    present = f"(SELECT {_typed(shape.key)} FROM {images} x WHERE NOT x.arrives AND {chosen}) s"
    whole = f"{_typed(shape.columns, columns)}, false AS concord_gone"
    arriving = f"(SELECT {whole} FROM {images} x WHERE x.arrives AND {chosen}) s"
    emptied = ", ".join(f"{shape.table.column(name).sql} = NULL" for name in columns)
    same = shape.same_key("t", "s")
    try:
        with connection.transaction(force_rollback=True):
            run(
                connection,
                f"UPDATE {shape.table.sql} t SET {emptied} FROM {present} WHERE {same}",
                f"MERGE INTO {shape.table.sql} t USING {arriving} ON {same} {merge.written(shape)}",
            )
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        if len(keys) > 1:
            return {key for each in keys for key in _refused(connection, shape, columns, images, [each])}
        by_others = isinstance(error, _BY_ANOTHER_ROW) and not _looks_at(connection, shape, error, columns)
        return set() if by_others else {*keys}
    return set()


def _looks_at(connection: Connection, shape: Shape, error: psycopg.Error, columns: Collection[str]) -> bool:
    """Has the index that refused the row a part or a predicate about one of the columns?"""
    rules = unique_rules.of_table(connection, shape.table.oid)
    return any(rule.name == error.diag.constraint_name and {*rule.columns} & {*columns} for rule in rules)


def _typed(columns: Iterable[Column], given_up: Collection[str] = ()) -> str:
    return ", ".join(
        f"{'NULL' if each.name in given_up else f'(x.image ->> {literal(each.name)})'}::{each.type.sql} AS {each.sql}"
        for each in columns
    )
