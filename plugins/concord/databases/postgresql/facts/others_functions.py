"""Functions of others that a read or a write of Concord's must run: their owners act with the rights of its logins.

Constraints, generated columns, indexes and views run their functions as whoever writes or reads. Concord cannot do
without them; so they are named. Not named are those of superusers and of the installer, who have every right here
already. The catalogue does not know which functions a function calls in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.catalogue_queries import TRUSTED
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.tables.replication_set import TableName

_FOUND = f"""
WITH RECURSIVE read AS (  -- a materialized view stands as it was last filled
  SELECT r.* FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class AND c.relkind <> 'm'
), used (start, oid) AS (
  SELECT w.oid, w.oid FROM unnest(ARRAY[{{oids}}]::oid[]) w (oid)
  UNION
  SELECT u.start, d.refobjid FROM used u JOIN read r ON r.ev_class = u.oid
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
), types (start, oid) AS (
  SELECT u.start, a.atttypid FROM used u JOIN pg_attribute a ON a.attrelid = u.oid AND a.attnum > 0
  UNION
  SELECT t.start, inner_type FROM types t JOIN pg_type y ON y.oid = t.oid
    LEFT JOIN pg_range r ON y.oid IN (r.rngtypid, r.rngmultitypid)
    CROSS JOIN unnest(ARRAY[y.typbasetype, y.typelem, r.rngtypid, r.rngsubtype]) inner_type
), objects (start, kind, name, classid, oid) AS (
  SELECT u.start, 'the constraint', quote_ident(c.conname), c.tableoid, c.oid
    FROM used u JOIN pg_constraint c ON c.conrelid = u.oid
  UNION ALL
  SELECT u.start, 'the column', quote_ident(a.attname), e.tableoid, e.oid FROM used u
    JOIN pg_attrdef e ON e.adrelid = u.oid JOIN pg_attribute a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
  UNION ALL
  SELECT u.start, 'the index', c.oid::regclass::text, c.tableoid, c.oid
    FROM used u JOIN pg_index i ON i.indrelid = u.oid JOIN pg_class c ON c.oid = i.indexrelid
  UNION ALL
  SELECT u.start, 'the statistics', quote_ident(s.stxname), s.tableoid, s.oid
    FROM used u JOIN pg_statistic_ext s ON s.stxrelid = u.oid
  UNION ALL
  SELECT u.start, CASE r.rulename WHEN '_RETURN' THEN 'the view' ELSE 'the rule' END,
         CASE r.rulename WHEN '_RETURN' THEN r.ev_class::regclass::text ELSE quote_ident(r.rulename) END,
         'pg_rewrite'::regclass, r.oid FROM used u JOIN read r ON r.ev_class = u.oid
  UNION ALL
  SELECT t.start, 'the domain', t.oid::regtype::text, c.tableoid, c.oid
    FROM types t JOIN pg_constraint c ON c.contypid = t.oid AND t.oid <> 0
  UNION ALL
  SELECT t.start, 'the range type', r.rngtypid::regtype::text, 'pg_type'::regclass, r.rngtypid
    FROM types t JOIN pg_range r ON r.rngtypid = t.oid
)
SELECT DISTINCT o.start::bigint, o.kind, o.name, f.oid::regprocedure::text, f.proowner::regrole::text
  FROM objects o JOIN pg_depend d ON d.classid = o.classid AND d.objid = o.oid
  LEFT JOIN pg_operator p ON d.refclassid = 'pg_operator'::regclass AND p.oid = d.refobjid
  JOIN pg_proc f ON f.oid = CASE d.refclassid WHEN 'pg_proc'::regclass THEN d.refobjid ELSE p.oprcode END
  JOIN pg_roles w ON w.oid = f.proowner
 WHERE NOT {TRUSTED} AND {{chosen}} ORDER BY 1, 2, 3, 4"""

_OTHERS = "NOT w.rolsuper AND w.rolname <> current_user"

_USERS = "NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"


def _mentions(relation: str, name: str, namespace: str, before: str, after: str) -> str:
    """Condition on a function `f`: its text names an object of another schema, without that schema."""
    return (
        f"EXISTS (SELECT 1 FROM {relation} n WHERE n.{namespace} {_USERS} AND n.{name} ~ '^\\w+$'"
        f" AND f.prosrc ~* ({literal(before)} || n.{name} || {literal(after)}))"
    )


#: How a text calls a function, reads a relation, and casts to a type, without the schema.
_NAMED = (
    _mentions("pg_proc", "proname", "pronamespace", r'(^|[^.\w"$])', r"\s*\("),
    _mentions("pg_class", "relname", "relnamespace", r"\m(from|join|into|update|only)\s+", r"\M"),
    _mentions("pg_type", "typname", "typnamespace", r"::\s*", r"\M"),
)

#: Its text is read when it runs, under the search_path of whoever runs it.
_BY_PATH = f"""f.prosqlbody IS NULL AND ({" OR ".join(_NAMED)})
   AND NOT EXISTS (SELECT 1 FROM unnest(f.proconfig) c WHERE starts_with(c, 'search_path='))"""


def notices(connection: Connection, site: str, tables: Mapping[TableName, Table]) -> Iterator[str]:
    """Each function of others, with what runs it and whose it is; then each that may need a search_path. One line
    each."""
    names = {table.oid: table.name for table in tables.values()}
    if not names:
        return
    oids = ", ".join(map(str, names))
    for oid, kind, name, function, owner in rows(connection, _FOUND.format(oids=oids, chosen=_OTHERS)):
        yield (
            f"{site}: {names[oid]}: {kind} {name} runs {function} of {owner} when Concord's logins read or write;"
            f" trust {owner} as far as them"
        )
    for oid, kind, name, function, _ in rows(connection, _FOUND.format(oids=oids, chosen=_BY_PATH)):
        yield (
            f"{site}: {names[oid]}: {kind} {name} runs {function}, which seems to find names by search_path; Concord's"
            f" sessions have an empty one: ALTER FUNCTION {function} SET search_path = …, or the table stops"
        )
