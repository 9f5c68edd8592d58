"""The catalogue's words about the replicated tables: columns, key, constraints, triggers."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import dict_row

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.facts.session import answers
from concord.databases.postgresql.facts.types import ColumnType
from concord.tables.replication_set import TableName


@dataclass(frozen=True, slots=True)
class Column:
    """One column as the catalogue describes it."""

    name: str
    type: ColumnType
    not_null: bool
    generated: bool  #: computed by the database; never sent (F49)
    identity: str  #: '', 'a' for ALWAYS, 'd' for BY DEFAULT
    deterministic: bool  #: False for a collation under which unequal texts are equal (F41)
    type_schema: str  #: where its type lives: a cast needs USAGE on it
    type_name: str  #: of an array that of its elements: a table that holds such values needs USAGE on it
    default: str | None = None  #: the expression that fills it where a row does not say
    place: int = 0  #: pg_attribute.attnum: another one when it was dropped and added again
    filled: str | None = None  #: what the rows got that were there when the column was added
    casts: tuple[str, ...] = ()  #: of its type, or of a type inside that, by functions that somebody wrote

    @property
    def sql(self) -> str:
        return quote(self.name)

    @property
    def must_be_given(self) -> bool:
        """A row that does not say what stands in it is refused by the database."""
        return self.not_null and self.default is None and not self.identity and not self.generated


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key, seen from the table that refers."""

    name: str
    child: TableName
    columns: tuple[str, ...]
    parent: TableName
    referenced: tuple[str, ...]
    on_delete: str = "a"  #: pg_constraint.confdeltype
    set_columns: tuple[str, ...] = ()  #: those that ON DELETE SET NULL names; empty is all of them
    match_full: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One replicated table as it stands in one site's catalogue."""

    name: TableName
    oid: int
    kind: str  #: pg_class.relkind
    persistence: str  #: 'p' permanent, 'u' unlogged, 't' temporary
    storage: int  #: pg_class.relfilenode: another one after every rewrite
    row_security: bool
    inherits: bool  #: it is, or has, a child table or a partition
    exclusive: (
        int  #: how many indexes it has by which rows can be in each other's way, the key's own included
    )
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...]  #: of valid, complete, immediate, not deferrable unique indexes
    deferrable_unique: tuple[tuple[str, ...], ...]
    exclusions_deferrable: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]  #: of this table to its parents
    referring: tuple[ForeignKey, ...]  #: of other tables (or itself) to this one
    triggers: dict[
        str, str
    ]  #: Concord's triggers: name → definition, how it is enabled, hash of its function
    sequences: tuple[TableName, ...]  #: those that feed its columns

    @property
    def sql(self) -> str:
        return qualified(self.name.schema_name, self.name.name)

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that travel, in the table's own order."""
        return tuple(column for column in self.columns if not column.generated)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def key_of(self, declared: Sequence[str] | None) -> tuple[str, ...]:
        return tuple(declared) if declared else self.primary_key

    @property
    def structure(self) -> str:
        """Equal at two sites when, and only when, rows of one fit into the other (F86)."""
        return fingerprint(self.columns)

    @property
    def casts(self) -> frozenset[str]:
        """By functions that somebody wrote, of any type in it."""
        return casts_of(self.columns)


def fingerprint(columns: Sequence[Column]) -> str:
    """Names and types, whatever their order."""
    described = sorted((c.name, c.type.descriptor, c.generated) for c in columns)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def casts_of(columns: Sequence[Column]) -> frozenset[str]:
    """By functions that somebody wrote: they would run with the rights of whoever reads or writes a value."""
    return frozenset(cast for column in columns for cast in column.casts)


#: Condition on a function `f`: it came with PostgreSQL, which also makes some for each range type, or with an extension
#: that a superuser installed. To such an extension its owner may add functions of his own.
TRUSTED = """(f.pronamespace = 'pg_catalog'::regnamespace
  OR f.prolang = (SELECT oid FROM pg_language WHERE lanname = 'internal')
  OR EXISTS (SELECT 1 FROM pg_depend d JOIN pg_roles o ON o.oid = f.proowner AND o.rolsuper
              WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e'))"""

_TYPES = """
WITH RECURSIVE below (start, oid, kind, name, typtype, typmod, depth) AS (
  SELECT t.oid, t.oid, CASE WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN 'a' ELSE t.typtype END,
         t.typname, t.typtype, -1, 0
    FROM pg_type t WHERE t.oid IN (SELECT atttypid FROM pg_attribute WHERE attrelid = ANY (wanted.oids))
  UNION ALL
  SELECT b.start, n.oid, b.kind, n.typname, n.typtype, -1, b.depth + 1
    FROM below b JOIN pg_type t ON t.oid = b.oid
    LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, r.rngmultitypid)
    JOIN pg_type n ON n.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype
                                   WHEN t.typtype IN ('r', 'm') THEN r.rngsubtype
                                   WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN t.typelem END
)
SELECT start, kind, string_agg(
         CASE typtype
           WHEN 'e' THEN 'enum(' || (SELECT string_agg(quote_literal(enumlabel), ',' ORDER BY enumsortorder)
                                       FROM pg_enum e WHERE e.enumtypid = below.oid) || ')'
           WHEN 'd' THEN name || '(' || (SELECT d.typtypmod FROM pg_type d
                                          WHERE d.oid = below.oid) || ')'
           ELSE name END, '/' ORDER BY depth) AS chain,
       (array_agg(CASE typtype WHEN 'e' THEN 'enum:' || name WHEN 'c' THEN 'composite:' || name
                               WHEN 'p' THEN 'pseudo:' || name ELSE name END ORDER BY depth DESC))[1] AS root,
       array_agg(oid) AS oids
  FROM below GROUP BY start, kind
"""


#: Of types `y.oids`. PostgreSQL's own are cast as PostgreSQL says: a cast is made by an owner of one of its two types.
_CASTS = f"""
array(SELECT format('(%s AS %s) WITH FUNCTION %s', k.castsource::regtype, k.casttarget::regtype, f.oid::regprocedure)
        FROM pg_cast k JOIN pg_proc f ON f.oid = k.castfunc
       WHERE NOT {TRUSTED}
         AND EXISTS (SELECT 1 FROM pg_type c WHERE c.oid IN (k.castsource, k.casttarget) AND c.oid = ANY (y.oids)
                        AND c.typnamespace <> 'pg_catalog'::regnamespace) ORDER BY 1)"""


def _columns_query(oids: str) -> str:
    types = _TYPES.replace("wanted.oids", oids)
    return f"""
SELECT a.attrelid::bigint AS table_oid, a.attname AS name, a.attnotnull AS not_null,
       a.attgenerated <> '' AS generated, a.attidentity AS identity,
       format_type(a.atttypid, a.atttypmod) AS sql, y.kind, y.chain, y.root, a.atttypmod AS modifier,
       coalesce(l.collisdeterministic, true) AS deterministic,
       tn.nspname AS type_schema, coalesce(e.typname, t.typname) AS type_name,
       CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END AS default_expression,
       a.attnum::int AS place, CASE WHEN a.atthasmissing THEN a.attmissingval::text END AS filled,
       {_CASTS} AS casts
  FROM pg_attribute a JOIN ({types}) y ON y.start = a.atttypid JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
  JOIN pg_namespace tn ON tn.oid = coalesce(e.typnamespace, t.typnamespace)
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 WHERE a.attrelid = ANY ({oids}) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum"""


_NAMED = """(VALUES {names}) w (schema_name, name)
  JOIN pg_namespace n ON n.nspname = w.schema_name
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name"""

_TABLES = """
SELECT c.oid::bigint AS oid, n.nspname AS schema_name, c.relname AS name, c.relkind AS kind,
       c.relpersistence AS persistence, c.relfilenode::bigint AS storage, c.relrowsecurity AS row_security,
       EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid) AS inherits,
       (SELECT count(*) FROM pg_index WHERE indrelid = c.oid AND (indisunique OR indisexclusion)) AS exclusive
  FROM """

_INDEXES = """
SELECT i.indrelid::bigint AS table_oid, i.indisprimary AS is_primary, i.indimmediate AS immediate,
       array(SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (attnum, place)
               JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
              WHERE k.place <= i.indnkeyatts ORDER BY k.place) AS columns, i.indnkeyatts AS width
  FROM pg_index i
 WHERE i.indrelid = ANY ({oids}) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL"""

_FOREIGN_KEYS = """
SELECT k.conname AS name, k.conrelid::bigint AS child_oid, k.confrelid::bigint AS parent_oid,
       cn.nspname AS child_schema, c.relname AS child_name, pn.nspname AS parent_schema, p.relname AS parent_name,
       array(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY u (n, place)
               JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.place) AS columns,
       array(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u (n, place)
               JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.n ORDER BY u.place) AS referenced,
       k.confdeltype::text AS on_delete, k.confmatchtype = 'f' AS match_full,
       array(SELECT a.attname::text FROM unnest(k.confdelsetcols) WITH ORDINALITY u (n, place)
               JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.n ORDER BY u.place) AS set_columns
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
  JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
 WHERE k.contype = 'f' AND k.conparentid = 0 AND (k.conrelid = ANY ({oids}) OR k.confrelid = ANY ({oids}))
 ORDER BY k.conname"""

_EXCLUSIONS = """
SELECT conrelid::bigint AS table_oid, conname AS name FROM pg_constraint
 WHERE contype = 'x' AND condeferrable AND conrelid = ANY ({oids})"""

#: The sequences of identity columns, and those that a default calls.
_SEQUENCES = """
SELECT f.table_oid::bigint AS table_oid, n.nspname AS schema_name, c.relname AS name
  FROM (SELECT refobjid AS table_oid, objid AS oid FROM pg_depend
         WHERE classid = 'pg_class'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'i'
           AND refobjid = ANY ({oids})
        UNION
        SELECT a.adrelid, d.refobjid FROM pg_attrdef a
          JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
                          AND d.refclassid = 'pg_class'::regclass
         WHERE a.adrelid = ANY ({oids})) f
  JOIN pg_class c ON c.oid = f.oid AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace
 ORDER BY 2, 3"""


def _trigger_state(function: str) -> str:
    """Everything about a trigger `t` that an alteration could change, its function's settings and rights included."""
    return f"t.tgenabled::text || ' ' || {function} || ' ' || pg_get_triggerdef(t.oid)"


TRIGGER_STATE = _trigger_state("md5(pg_get_functiondef(t.tgfoid))")

#: The triggers for a table's rows share a function, which is looked at once.
_TRIGGERS = f"""
WITH own AS MATERIALIZED (
  SELECT * FROM pg_trigger t
   WHERE NOT t.tgisinternal AND t.tgrelid = ANY ({{oids}}) AND t.tgname LIKE 'zz\\_concord\\_%'
), functions AS MATERIALIZED (
  SELECT f.oid, md5(pg_get_functiondef(f.oid)) AS state FROM (SELECT DISTINCT tgfoid AS oid FROM own) f
)
SELECT t.tgrelid::bigint AS table_oid, t.tgname AS name, {_trigger_state("f.state")} AS definition
  FROM own t JOIN functions f ON f.oid = t.tgfoid"""

Row = dict[str, Any]


Answer = Sequence[Row]


def read_tables(connection: psycopg.Connection[Any], names: Sequence[TableName]) -> dict[TableName, Table]:
    """The tables that exist among `names`; a constant number of queries however many there are, in one round trip."""
    return tables(answers(connection, *queries(names), row_factory=dict_row))


def queries(names: Sequence[TableName]) -> list[str]:
    """The facts that `tables` wants to know; nothing where there are no names."""
    if not names:
        return []
    named, oids = _named(names)
    own = [query.format(oids=oids) for query in (_INDEXES, _EXCLUSIONS, _TRIGGERS, _SEQUENCES, _FOREIGN_KEYS)]
    return [_TABLES + named, _columns_query(oids), *own]


def tables(found: Sequence[Answer]) -> dict[TableName, Table]:
    """The tables that exist, by the answers to `queries`."""
    if not found:
        return {}
    heads, *own, foreign = found
    of_table = [*map(_by_table, own)]
    both_ways = [_by_table(foreign, end) for end in ("child_oid", "parent_oid")]
    described = [
        _table(head, *(each[oid] for each in of_table), foreign=[each[oid] for each in both_ways])
        for head in heads
        for oid in [head["oid"]]
    ]
    return {table.name: table for table in described}


def _named(names: Sequence[TableName]) -> tuple[str, str]:
    """The tables as a relation `c` in their namespaces `n`, and their oids as an array."""
    listed = ", ".join(f"({literal(name.schema_name)}, {literal(name.name)})" for name in names)
    relation = _NAMED.format(names=listed)
    return relation, f"ARRAY(SELECT c.oid FROM {relation})"


def _by_table(found: Sequence[Row], oid: str = "table_oid") -> Mapping[int, list[Row]]:
    """Looked up for each of many tables: looking through all of them for each would take its square."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in found:
        rows[row[oid]].append(row)
    return rows


def altered_since(connection: psycopg.Connection[Any], tables: Sequence[Table]) -> set[TableName]:
    """Those of `tables` whose columns, files or casts are others by now."""
    now = read_storage(connection, [table.name for table in tables])
    return {
        table.name
        for table in tables
        if now.get(table.name) != Storage(table.oid, table.storage, table.structure, table.casts)
    }


class Storage(NamedTuple):
    """A table's make: another one when it was made anew, rewritten, or its columns or their types altered."""

    oid: int
    file: int
    structure: str
    casts: frozenset[str]


def read_storage(
    connection: psycopg.Connection[Any], names: Sequence[TableName], *first: str
) -> dict[TableName, Storage]:
    """Of those that exist among `names`, once the statements `first` are done, in one round trip."""
    if not names:
        return {}
    named, oids = _named(names)
    queries = (_TABLES + named, _columns_query(oids))
    *_, heads, columns = answers(connection, *first, *queries, row_factory=dict_row)
    found = {oid: [*map(_column, described)] for oid, described in _by_table(columns).items()}
    return {
        TableName(schema_name=head["schema_name"], name=head["name"]): Storage(
            head["oid"], head["storage"], fingerprint(its), casts_of(its)
        )
        for head in heads
        for its in [found.get(head["oid"], [])]
    }


def _table(
    head: Row,
    columns: list[Row],
    indexes: list[Row],
    exclusions: list[Row],
    triggers: list[Row],
    sequences: list[Row],
    *,
    foreign: list[list[Row]],  # this table's own, and those that refer to it
) -> Table:
    own, others = foreign
    unique = [index for index in indexes if len(index["columns"]) == index["width"]]
    primary = [tuple(index["columns"]) for index in unique if index["is_primary"] and index["immediate"]]
    return Table(
        name=TableName(schema_name=head["schema_name"], name=head["name"]),
        oid=head["oid"],
        kind=head["kind"],
        persistence=head["persistence"],
        storage=head["storage"],
        row_security=head["row_security"],
        inherits=head["inherits"],
        exclusive=head["exclusive"],
        columns=tuple(map(_column, columns)),
        primary_key=primary[0] if primary else (),
        unique_keys=tuple(tuple(index["columns"]) for index in unique if index["immediate"]),
        deferrable_unique=tuple(tuple(index["columns"]) for index in unique if not index["immediate"]),
        exclusions_deferrable=tuple(row["name"] for row in exclusions),
        foreign_keys=tuple(map(_foreign_key, own)),
        referring=tuple(map(_foreign_key, others)),
        triggers={row["name"]: row["definition"] for row in triggers},
        sequences=tuple(TableName(schema_name=row["schema_name"], name=row["name"]) for row in sequences),
    )


def _column(row: Row) -> Column:
    descriptor = f"{row['chain']}:{row['modifier']}"
    kind = ColumnType(
        sql=row["sql"],
        descriptor=descriptor,
        kind=row["kind"],
        root=row["root"],
        built_in=row["type_schema"] == "pg_catalog",
    )
    return Column(
        name=row["name"],
        type=kind,
        not_null=row["not_null"],
        generated=row["generated"],
        identity=row["identity"],
        deterministic=row["deterministic"],
        type_schema=row["type_schema"],
        type_name=row["type_name"],
        default=row["default_expression"],
        place=row["place"],
        filled=row["filled"],
        casts=tuple(row["casts"]),
    )


def _foreign_key(row: Row) -> ForeignKey:
    return ForeignKey(
        name=row["name"],
        child=TableName(schema_name=row["child_schema"], name=row["child_name"]),
        columns=tuple(row["columns"]),
        parent=TableName(schema_name=row["parent_schema"], name=row["parent_name"]),
        referenced=tuple(row["referenced"]),
        on_delete=row["on_delete"],
        set_columns=tuple(row["set_columns"]),
        match_full=row["match_full"],
    )
