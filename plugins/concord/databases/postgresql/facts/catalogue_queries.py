"""Queries of the catalogue about replicated tables: columns with their types, indexes, constraints, triggers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import comparison
from concord.tables.replication_set import TableName

#: Condition on a function `f`: it came with PostgreSQL, which also makes some for each range type, or with an extension
#: that a superuser installed. To such an extension its owner may add functions of his own.
TRUSTED = """(f.pronamespace = 'pg_catalog'::regnamespace
  OR f.prolang = (SELECT oid FROM pg_language WHERE lanname = 'internal')
  OR EXISTS (SELECT 1 FROM pg_depend d JOIN pg_roles o ON o.oid = f.proowner AND o.rolsuper
              WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e'))"""


#: Of types `y.oids`. PostgreSQL's own are cast as PostgreSQL says: a cast is made by an owner of one of its two types.
_CASTS = f"""
array(SELECT format('(%s AS %s) WITH FUNCTION %s', k.castsource::regtype, k.casttarget::regtype, f.oid::regprocedure)
        FROM pg_cast k JOIN pg_proc f ON f.oid = k.castfunc
       WHERE NOT {TRUSTED}
         AND EXISTS (SELECT 1 FROM pg_type c WHERE c.oid IN (k.castsource, k.casttarget) AND c.oid = ANY (y.oids)
                        AND c.typnamespace <> 'pg_catalog'::regnamespace) ORDER BY 1)"""


def types_query(oids: Collection[int]) -> str:
    """The types, each with all that is inside it: what it is made of, down to the last."""
    return f"""
WITH RECURSIVE below (start, oid, kind, name, typtype, typmod, depth) AS (
  SELECT t.oid, t.oid, CASE WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN 'a' ELSE t.typtype END,
         t.typname, t.typtype, -1, 0
    FROM pg_type t WHERE t.oid IN ({", ".join(map(str, sorted(oids)))})
  UNION ALL
  SELECT b.start, n.oid, b.kind, n.typname, n.typtype, -1, b.depth + 1
    FROM below b JOIN pg_type t ON t.oid = b.oid
    LEFT JOIN pg_range r ON t.oid IN (r.rngtypid, r.rngmultitypid)
    JOIN pg_type n ON n.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype
                                   WHEN t.typtype IN ('r', 'm') THEN r.rngsubtype
                                   WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN t.typelem END
)
SELECT y.start::bigint AS oid, y.kind, y.chain, y.root, {_CASTS} AS casts
  FROM (
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
  FROM below GROUP BY start, kind) y"""


#: From PostgreSQL 17 on, a multirange type has the privileges of its range type, and takes none of its own.
_MULTIRANGES_FOLLOW = "current_setting('server_version_num')::int >= 170000"


def columns_query(oids: str, attributes: str = "pg_attribute") -> str:
    """Of the tables `oids`: their columns, with the names of their types.

    `attributes` has the columns of `pg_attribute`, of which they are read.

    A type is plain when its name describes it completely: one of PostgreSQL's own base types, or an array of one. Most
    columns have such a type. `types_query`, for all others, takes longer than every other query of the catalogue.
    """
    return f"""
SELECT a.attrelid::bigint AS table_oid, a.attname AS name, a.attnotnull AS not_null,
       a.attgenerated <> '' AS generated, a.attgenerated = 'v' AS virtual, a.attidentity AS identity,
       format_type(a.atttypid, a.atttypmod) AS sql, a.atttypid::bigint AS type_oid, a.atttypmod AS modifier,
       t.typname AS named, e.typname AS element, tn.nspname AS type_schema,
       coalesce(gn.nspname, tn.nspname) AS granted_schema, coalesce(g.typname, e.typname, t.typname) AS granted_name,
       tn.nspname = 'pg_catalog' AND tn.oid = t.typnamespace AND t.typtype = 'b'
         AND (e.oid IS NULL OR e.typtype = 'b' AND e.typcategory <> 'A') AS plain,
       coalesce((SELECT l.collisdeterministic FROM pg_collation l WHERE l.oid = a.attcollation), true) AS deterministic,
       CASE WHEN a.atthasdef AND a.attgenerated = '' THEN
         (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum)
       END AS default_expression,
       a.attnum::int AS place, a.xmin::text AS version,
       CASE WHEN a.atthasdef THEN (SELECT d.oid::bigint FROM pg_attrdef d WHERE d.adrelid = a.attrelid
                                      AND d.adnum = a.attnum) ELSE 0 END AS default_oid,
       CASE WHEN a.atthasmissing THEN a.attmissingval::text END AS filled
  FROM {attributes} a JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
  JOIN pg_namespace tn ON tn.oid = coalesce(e.typnamespace, t.typnamespace)
  LEFT JOIN pg_range m ON m.rngmultitypid = coalesce(e.oid, t.oid) AND {_MULTIRANGES_FOLLOW}
  LEFT JOIN pg_type g ON g.oid = m.rngtypid
  LEFT JOIN pg_namespace gn ON gn.oid = g.typnamespace
 WHERE a.attrelid = ANY ({oids}) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum"""


_NAMED = """(VALUES {names}) w (schema_name, name)
  JOIN pg_namespace n ON n.nspname = w.schema_name
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name"""


#: The files of tables: others after every rewrite.
STORAGE = """
SELECT c.oid::bigint AS oid, n.nspname AS schema_name, c.relname AS name, c.relfilenode::bigint AS storage FROM """


#: Everything about a trigger `t` that an alteration could change, its function's settings and rights included.
TRIGGER_STATE = (
    "t.tgenabled::text || ' ' || md5(pg_get_functiondef(t.tgfoid)) || ' ' || pg_get_triggerdef(t.oid)"
)


#: PostgreSQL 18 of a foreign key `k`: `PERIOD` is checked by containment, `NOT ENFORCED` not at all.
_IS_TEMPORAL = "coalesce((to_jsonb(k) ->> 'conperiod')::boolean, false)"
_IS_CHECKED = "coalesce((to_jsonb(k) ->> 'conenforced')::boolean, true)"


#: Tables with what belongs to each alone, which is looked up by the table's oid.
_TABLES = f"""
SELECT c.oid::bigint AS oid, n.nspname AS schema_name, c.relname AS name, c.relkind AS kind,
       c.relpersistence AS persistence, c.relfilenode::bigint AS storage, c.relrowsecurity AS row_security,
       EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid) AS inherits,
       array(SELECT json_build_object('primary', i.indisprimary, 'immediate', i.indimmediate,
                      'complete', i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL,
                      'columns', (i.indkey::int2[])[0:i.indnkeyatts - 1],
                      'comparisons', {comparison.of_index()})
               FROM pg_index i WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)) AS indexes,
       array(SELECT k.conname::text FROM pg_constraint k
              WHERE k.conrelid = c.oid AND k.contype = 'x' AND k.condeferrable) AS exclusions_deferrable,
       coalesce((SELECT json_object_agg(t.tgname, {TRIGGER_STATE}) FROM pg_trigger t
                  WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname LIKE 'zz\\_concord\\_%'), '{{}}')
         AS triggers,
       array(SELECT r.rulename::text FROM pg_rewrite r WHERE r.ev_class = c.oid AND c.relkind = 'r' ORDER BY 1) AS rules
  FROM """


def _end(table: str, columns: str) -> str:
    """One end of a foreign key: the name of its table, and those of its columns by their places."""
    return f"""(SELECT json_build_object('schema_name', n.nspname, 'name', c.relname, 'columns',
               (SELECT json_object_agg(attnum, attname) FROM pg_attribute
                 WHERE attrelid = c.oid AND attnum = ANY ({columns})))
          FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {table})"""


def _compared(operators: str, right: str) -> str:
    """Of the foreign key `k`, column by column: a value of the parent's on the left; it has the collation."""
    one = comparison.described(f"{operators}[u.n]", "p.attcollation", "p.atttypid", f"{right}.atttypid")
    return f"""array(SELECT {one} FROM generate_subscripts(k.conkey, 1) u (n)
          JOIN pg_attribute c ON (c.attrelid, c.attnum) = (k.conrelid, k.conkey[u.n])
          JOIN pg_attribute p ON (p.attrelid, p.attnum) = (k.confrelid, k.confkey[u.n]) ORDER BY u.n)"""


_FOREIGN_KEYS = f"""
SELECT k.conname AS name, k.conrelid::bigint AS child_oid, k.confrelid::bigint AS parent_oid,
       {_end("k.conrelid", "k.conkey")} AS child, {_end("k.confrelid", "k.confkey")} AS parent,
       k.conkey AS columns, k.confkey AS referenced, k.confdelsetcols AS set_columns,
       {_compared("k.conpfeqop", "c")} AS comparisons, {_compared("k.conppeqop", "p")} AS among_parents,
       k.confdeltype::text AS on_delete, k.confmatchtype = 'f' AS match_full, {_IS_TEMPORAL} AS temporal,
       k.convalidated AS validated
  FROM pg_constraint k
 WHERE k.contype = 'f' AND k.conparentid = 0 AND {_IS_CHECKED}
   AND (k.conrelid = ANY ({{oids}}) OR k.confrelid = ANY ({{oids}}))
 ORDER BY k.conname"""


#: Columns and the sequences that feed them: of an identity column, owned by the column (as of a serial one), and called
#: by a default of the column or of its domain.
FED = """
SELECT d.refobjid AS table_oid, d.refobjsubid AS attnum, d.objid AS sequence FROM pg_depend d
 WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
   AND d.deptype IN ('i', 'a')
UNION
SELECT a.adrelid, a.adnum, d.refobjid FROM pg_attrdef a
  JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
UNION
SELECT a.attrelid, a.attnum, d.refobjid FROM pg_attribute a
  JOIN pg_depend d ON d.classid = 'pg_type'::regclass AND d.objid = a.atttypid AND d.refclassid = 'pg_class'::regclass
 WHERE NOT a.atthasdef"""

_SEQUENCES = f"""
SELECT DISTINCT f.table_oid::bigint AS table_oid, n.nspname AS schema_name, c.relname AS name
  FROM ({FED}) f
  JOIN pg_class c ON c.oid = f.sequence AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE f.table_oid = ANY ({{oids}}) ORDER BY 2, 3"""


def queries(names: Sequence[TableName], *, sequences: bool) -> list[str]:
    """The facts that `tables` wants to know, with the sequences or without; nothing where there are no names."""
    if not names:
        return []
    relation, oids = named(names)
    more = [_SEQUENCES] if sequences else []
    return [
        _TABLES + relation,
        columns_query(oids),
        *(each.format(oids=oids) for each in (_FOREIGN_KEYS, *more)),
    ]


def named(names: Sequence[TableName]) -> tuple[str, str]:
    """The tables as a relation `c` in their namespaces `n`, and their oids as an array."""
    listed = ", ".join(f"({literal(name.schema_name)}, {literal(name.name)})" for name in names)
    relation = _NAMED.format(names=listed)
    return relation, f"ARRAY(SELECT c.oid FROM {relation})"
