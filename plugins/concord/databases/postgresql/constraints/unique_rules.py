"""Every constraint by which two rows of a table can be in each other's way: unique indexes, partial ones, those on
expressions, exclusion constraints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.comparison import EQUALS, Comparison, comparison_of, of_index
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.rows.shape import Shape
from concord.rules.unique_rule import Rule

_RULES = """
SELECT c.relname, i.indimmediate, i.indnullsnotdistinct, i.indisexclusion,
       NOT EXISTS (SELECT 1 FROM pg_collation l WHERE l.oid = ANY (i.indcollation) AND NOT l.collisdeterministic),
       pg_get_expr(i.indpred, i.indrelid),
       array(SELECT pg_get_indexdef(i.indexrelid, k, true) FROM generate_series(1, i.indnkeyatts) k ORDER BY k),
       {compared},
       array(SELECT a.attname::text FROM pg_attribute a
              WHERE a.attrelid = i.indrelid AND a.attnum > 0
                AND (a.attnum = ANY (i.indkey::int2[])
                     OR EXISTS (SELECT 1 FROM pg_depend d
                                 WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                                   AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum)) ORDER BY a.attnum)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indrelid = {oid} AND i.indisvalid AND (i.indisunique OR i.indisexclusion)
 ORDER BY c.relname"""


@dataclass(frozen=True, slots=True)
class UniqueRule:
    """One such constraint, in the words of the catalogue."""

    name: str
    immediate: bool  #: False: checked by a trigger, which replica role silences
    nulls_collide: bool
    excludes: bool  #: it names operators of its own
    exact: bool  #: under no collation of its own are unequal texts equal
    predicate: str | None
    parts: tuple[str, ...]  #: expressions over the table's own columns, by their bare names
    comparisons: tuple[Comparison, ...]
    columns: tuple[str, ...]  #: every column that parts or predicate name

    @property
    def condition(self) -> str:
        """SQL on one row: does the rule look at it at all?"""
        return f"({self.predicate})" if self.predicate else "true"

    @property
    def values(self) -> str:
        """SQL on one row: what two rows may not have in common, as u0, u1, …"""
        return ", ".join(f"({part}) AS u{place}" for place, part in enumerate(self.parts))

    def meets(self, row: str) -> str:
        """SQL on one row: does it collide with the values of `row`?"""
        pairs = enumerate(zip(self.parts, self.comparisons, strict=True))
        return " AND ".join(compared.sql(f"({part})", f"{row}.u{place}") for place, (part, compared) in pairs)

    def decided(self, connection: Connection, shape: Shape, identity: str) -> Rule:
        """The loser's sacrifice: the last column that may be NULL, is not of the key and frees the row; else the row
        goes."""
        freeing = [] if self.nulls_collide else self._freeing(connection, shape)
        gives_up = [name for name in freeing if _may_be_null(shape, name)]
        return Rule(self.name, identity, gives_up[-1] if gives_up else None, frozenset(freeing))

    def _freeing(self, connection: Connection, shape: Shape) -> list[str]:
        """Columns whose NULL makes a part NULL, and a rule passes over such a row.

        An expression may have another value then, as `coalesce(code, 0)` does, or a range without an end. It is
        evaluated where no other column is part of it; one that fails lets no row have the NULL.
        """
        named = [(part, [name for name in self.columns if _names(part, name)]) for part in self.parts]
        return [
            names[0]
            for part, names in named
            if len(names) == 1 and _ends(connection, part, shape.table.column(names[0]))
        ]


def _ends(connection: Connection, part: str, column: Column) -> bool:
    """Is the part NULL where the column is?"""
    row = f"(SELECT NULL::{column.type.sql} AS {column.sql}) alone"
    try:
        with connection.transaction():
            [(is_null,)] = rows(connection, f"SELECT ({part}) IS NULL FROM {row}")
    except psycopg.Error as error:
        if not is_refusal(error):
            raise
        return False
    return bool(is_null)


def _names(part: str, column: str) -> bool:
    """Does an expression of the catalogue's name the column? It quotes where it must."""
    spelled = "|".join(map(re.escape, (column, quote(column))))
    return re.search(rf'(?<![\w"$])(?:{spelled})(?![\w"$(])', part) is not None


def _may_be_null(shape: Shape, name: str) -> bool:
    return name not in shape.shadow.key and not shape.table.column(name).not_null


def read(connection: Connection, shape: Shape) -> list[UniqueRule]:
    """The rules by which rows of different keys can collide, and of which a link sees every column."""
    return [
        rule
        for rule in of_table(connection, shape.table.oid)
        if not _is_key(rule, shape.shadow.key) and set(rule.columns) <= set(shape.names)
    ]


def of_table(connection: Connection, oid: int) -> list[UniqueRule]:
    """All rules of a table, its key's own among them."""
    return [
        UniqueRule(
            name,
            immediate,
            nulls,
            excludes,
            exact,
            predicate,
            tuple(parts),
            tuple(map(comparison_of, compared)),
            tuple(columns),
        )
        for name, immediate, nulls, excludes, exact, predicate, parts, compared, columns in rows(
            connection, _RULES.format(oid=oid, compared=of_index())
        )
    ]


def _is_key(rule: UniqueRule, key: Sequence[str]) -> bool:
    """Rows of different keys never meet in the key's own index."""
    plain = {name for name in rule.columns if any(part in (name, quote(name)) for part in rule.parts)}
    equal = rule.exact and all(compared.operator == EQUALS for compared in rule.comparisons)
    return equal and rule.predicate is None and len(plain) == len(rule.parts) and plain >= set(key)
