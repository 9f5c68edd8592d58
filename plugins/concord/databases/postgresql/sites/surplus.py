"""Rights on Concord's own objects that no link needs: what somebody else granted the two logins, or an older Concord.

Rights that everybody has count as the logins' own, but for those on functions: each of these says whom it serves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.own_schema import SCHEMAS
from concord.databases.postgresql.facts.privileges import Grant
from concord.databases.postgresql.sites.grants import Logins

_SCHEMAS = f"({', '.join(map(literal, SCHEMAS))})"

#: As GRANT names a right.
_WHAT = "privilege || coalesce(' (' || quote_ident(column_name) || ')', '')"

#: Every object in Concord's schemas, as GRANT calls it.
_OBJECTS = f"""
SELECT 'SCHEMA' AS kind, nspname::text AS space, nspname::text AS name, NULL::text AS column_name, nspname::text AS sql,
       nspowner AS owner, nspacl AS acl FROM pg_namespace WHERE nspname IN {_SCHEMAS}
UNION ALL
SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, n.nspname, c.relname, NULL, c.oid::regclass::text,
       c.relowner, c.relacl FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname IN {_SCHEMAS}
UNION ALL
SELECT 'TABLE', n.nspname, c.relname, a.attname, c.oid::regclass::text, c.relowner, a.attacl
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname IN {_SCHEMAS} AND NOT a.attisdropped
UNION ALL
SELECT 'FUNCTION', n.nspname, f.proname, NULL, f.oid::regprocedure::text, f.proowner, f.proacl
  FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE n.nspname IN {_SCHEMAS}"""


def _listed(grants: Sequence[Grant]) -> str:
    """The rights to Concord's own among them, as JSON."""
    wanted = [
        (grant.role, grant.kind, grant.name[0], grant.name[-1], column, privilege)
        for grant in grants
        if grant.name[0] in SCHEMAS
        for column in grant.columns or [None]
        for privilege in grant.privileges
    ]
    names = ("role", "kind", "space", "name", "column_name", "privilege")
    return literal(json.dumps([dict(zip(names, each, strict=True)) for each in wanted]))


def _query(grants: Sequence[Grant], logins: Logins) -> str:
    """Each right of a login's, or of a role that it is in or PUBLIC, that is not among `grants`.

    A right that is among them, and may be passed on, is one `option` too many. Shadow tables of which `grants` know
    nothing belong to tables that somebody else provisioned.
    """
    needed = (
        "(SELECT w.role, w.kind, w.space, w.name, coalesce(w.column_name, ''), w.privilege FROM wanted w)"
    )
    return f"""
WITH wanted AS MATERIALIZED (  -- looked up by hash: a site may have thousands of tables
  SELECT * FROM json_to_recordset({_listed(grants)})
    AS w (role text, kind text, space text, name text, column_name text, privilege text)
), logins AS (
  SELECT oid, rolname::text AS login, rolsuper FROM pg_roles WHERE rolname IN ({", ".join(map(literal, logins.both))})
), held AS (
  SELECT l.login, o.*, a.grantor, a.grantee, a.privilege_type AS privilege, a.grantee = l.oid AS own,
         a.is_grantable AND a.grantee = l.oid AS grantable
    FROM ({_OBJECTS}) o CROSS JOIN LATERAL aclexplode(o.acl) a
    JOIN logins l ON a.grantee = l.oid OR a.grantee = 0 AND o.kind <> 'FUNCTION'
      OR a.grantee <> 0 AND NOT l.rolsuper AND pg_has_role(l.oid, a.grantee, 'MEMBER')
   WHERE a.grantee <> o.owner
), judged AS (
  SELECT h.*, grantee <> 0 AND ((login, kind, space, name, '', privilege) IN {needed}
              OR (login, kind, space, name, coalesce(column_name, ''), privilege) IN {needed}) AS needed FROM held h
)
SELECT login, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS grantee,
       own OR grantee = 0 AS revocable, needed AS option, grantor <> owner AS passed_on, kind, sql,
       {_WHAT} AS what
  FROM judged
 WHERE (NOT needed OR grantable)
   AND (kind <> 'TABLE' OR space <> 'concord' OR name IN (SELECT w.name FROM wanted w WHERE w.kind = 'TABLE')
        OR name NOT IN (SELECT shadow FROM concord.replicated_table))"""


def problems(connection: Connection, site: str, grants: Sequence[Grant], logins: Logins) -> Iterator[str]:
    """The logins' rights beyond `grants`, one line for each object; the site is provisioned."""
    found = rows(
        connection,
        "SELECT login, grantee, revocable, option, lower(kind) || ' ' || sql, string_agg(what, ', ' ORDER BY what)"
        f" FROM ({_query(grants, logins)}) x GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 5, 4",
    )
    for login, grantee, revocable, option, on, held in found:
        if not revocable:
            yield (
                f"{site}: the login {login} has {held} on {on} by the role {grantee}, and no link needs it;"
                f" REVOKE {grantee} FROM {quote(login)}"
            )
        elif option:
            yield f"{site}: the login {login} may grant {held} on {on} to others; run `provision`, which takes it back"
        else:
            whose = "everybody" if grantee == "PUBLIC" else f"the login {login}"
            yield f"{site}: {whose} has {held} on {on}, and no link needs it; run `provision`, which takes it back"


def revocation(grants: Sequence[Grant], logins: Logins) -> str:
    """Statement: what the logins or PUBLIC hold beyond `grants` goes. Those who passed it on may do so no more.

    For whoever acts as the owner of it all. It may take rights on columns with one on their table: grant after it.
    """
    block = f"""
DECLARE
  r record;
  passing record;
BEGIN
  FOR r IN {_query(grants, logins)} LOOP
    CONTINUE WHEN NOT r.revocable;
    IF r.passed_on THEN
      FOR passing IN
        SELECT DISTINCT a.grantee::regrole::text AS role
          FROM ({_OBJECTS}) o CROSS JOIN LATERAL aclexplode(o.acl) a
         WHERE (o.kind, o.sql) = (r.kind, r.sql) AND a.grantor = o.owner AND a.grantee <> o.owner AND a.is_grantable
           AND {_WHAT.replace("privilege", "a.privilege_type")} = r.what
      LOOP
        EXECUTE format('REVOKE GRANT OPTION FOR %s ON %s %s FROM %s CASCADE', r.what, r.kind, r.sql, passing.role);
      END LOOP;
    END IF;
    EXECUTE format('REVOKE %s%s ON %s %s FROM %s CASCADE',
                   CASE WHEN r.option THEN 'GRANT OPTION FOR ' END, r.what, r.kind, r.sql, r.grantee);
  END LOOP;
END"""
    return f"DO {literal(block)}"
