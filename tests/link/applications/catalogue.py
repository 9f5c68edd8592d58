"""The tables of a database as its catalogue describes them: columns, keys, unique values, references."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg


class Column(NamedTuple):
    """One column, and how a row gets its value."""

    name: str
    type: str  #: without its length; of a domain, the type below it
    domain: str
    length: int | None
    labels: list[str]  #: of an enum, or of an array of one
    nullable: bool
    filled: bool  #: the database gives a value: a default, a sequence, an expression
    updatable: bool  #: not generated, not in the key, not in a CHECK with other columns
    unique: bool  #: in a unique index, alone or with others


class ForeignKey(NamedTuple):
    """A reference of some columns to those of a parent."""

    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """One table under its quoted name."""

    name: str
    columns: dict[str, Column]
    key: tuple[str, ...]
    uniques: tuple[
        tuple[str, ...], ...
    ]  #: the columns of each unique index without expressions, but for the key
    foreign_keys: tuple[ForeignKey, ...]  #: those of most columns first


_OURS = "n.nspname !~ '^(pg_|information_schema|concord)' AND c.relkind = 'r'"
_NAME = "format('%I.%I', n.nspname, c.relname)"
_CLASS = "(pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace)"


def _names(relation: str, numbers: str) -> str:
    """The columns of these numbers, in their order."""
    return (
        f"ARRAY(SELECT attname::text FROM unnest({numbers}) WITH ORDINALITY u (number, place)"
        f" JOIN pg_attribute ON attrelid = {relation} AND attnum = number ORDER BY place)"
    )


_COLUMNS = f"""
SELECT {_NAME}, a.attname,
       format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL),
       CASE t.typtype WHEN 'd' THEN t.typname ELSE '' END,
       nullif(CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END, -1) - 4,
       ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid IN (t.oid, t.typelem) ORDER BY enumsortorder),
       NOT a.attnotnull,
       (a.atthasdef OR a.attidentity <> '') AND t.typname <> 'uuid',
       a.attgenerated = '' AND NOT EXISTS (
         SELECT FROM pg_constraint k WHERE k.conrelid = c.oid AND a.attnum = ANY (k.conkey)
            AND (k.contype = 'p' OR (k.contype = 'c' AND cardinality(k.conkey) > 1))),
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND a.attnum = ANY (i.indkey))
  FROM pg_attribute a JOIN {_CLASS} ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
 WHERE {_OURS} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.oid, a.attnum"""

_UNIQUES = f"""
SELECT {_NAME}, i.indisprimary, {_names("c.oid", "i.indkey::int2[]")}
  FROM pg_index i JOIN {_CLASS} ON c.oid = i.indrelid
 WHERE {_OURS} AND i.indisunique AND NOT 0 = ANY (i.indkey) ORDER BY i.indexrelid"""

_FOREIGN_KEYS = f"""
SELECT {_NAME}, {_names("k.conrelid", "k.conkey")}, (SELECT {_NAME} FROM {_CLASS} WHERE c.oid = k.confrelid),
       {_names("k.confrelid", "k.confkey")}
  FROM pg_constraint k JOIN {_CLASS} ON c.oid = k.conrelid
 WHERE {_OURS} AND k.contype = 'f' ORDER BY cardinality(k.conkey) DESC, k.oid"""


def tables(connection: psycopg.Connection[Any]) -> dict[str, Table]:
    """Every table but Concord's by its name, in the order they were made."""
    columns: dict[str, dict[str, Column]] = defaultdict(dict)
    keys: dict[str, tuple[str, ...]] = {}
    uniques: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    foreign_keys: dict[str, list[ForeignKey]] = defaultdict(list)
    for table, name, *facts in connection.execute(_COLUMNS.encode()):
        columns[table][name] = Column(name, *facts)
    for table, primary, names in connection.execute(_UNIQUES.encode()):
        if primary:
            keys[table] = tuple(names)
        else:
            uniques[table].append(tuple(names))
    for table, names, parent, parent_names in connection.execute(_FOREIGN_KEYS.encode()):
        foreign_keys[table].append(ForeignKey(tuple(names), parent, tuple(parent_names)))
    return {
        name: Table(name, of_table, keys[name], tuple(uniques[name]), tuple(foreign_keys[name]))
        for name, of_table in columns.items()
    }
