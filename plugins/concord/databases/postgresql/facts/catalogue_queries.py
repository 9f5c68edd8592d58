"""Queries of the catalogue about replicated tables: columns with their types, indexes, constraints, triggers."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.contract.quoting import literal
from concord.tables.replication_set import TableName

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


def columns_query(oids: str) -> str:
    """Of the tables `oids`: their columns, and their types with all that is inside these."""
    types = _TYPES.replace("wanted.oids", oids)
    return f"""
SELECT a.attrelid::bigint AS table_oid, a.attname AS name, a.attnotnull AS not_null,
       a.attgenerated <> '' AS generated, a.attidentity AS identity,
       format_type(a.atttypid, a.atttypmod) AS sql, a.atttypid::bigint AS type_oid, y.kind, y.chain, y.root,
       a.atttypmod AS modifier,
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


TABLES = """
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


def queries(names: Sequence[TableName]) -> list[str]:
    """The facts that `tables` wants to know; nothing where there are no names."""
    if not names:
        return []
    relation, oids = named(names)
    own = [query.format(oids=oids) for query in (_INDEXES, _EXCLUSIONS, _TRIGGERS, _SEQUENCES, _FOREIGN_KEYS)]
    return [TABLES + relation, columns_query(oids), *own]


def named(names: Sequence[TableName]) -> tuple[str, str]:
    """The tables as a relation `c` in their namespaces `n`, and their oids as an array."""
    listed = ", ".join(f"({literal(name.schema_name)}, {literal(name.name)})" for name in names)
    relation = _NAMED.format(names=listed)
    return relation, f"ARRAY(SELECT c.oid FROM {relation})"
