"""Whether an object under one of Concord's names is Concord's: by its owner. Nobody can give an object to a role that
he is no member of.

Concord's are the objects of its own role, of the installer, and of superusers. An object of any other role may have
been made to be found by Concord. The functions of a view run with the rights of its reader, and a table's triggers
with those of its writer. Such an object is refused by name. It is never read, called, altered or handed over.
"""

from __future__ import annotations

from collections.abc import Collection

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.own_schema import OWNER_PREFIX, SCHEMAS
from concord.messages.errors import ConnectionRefused


def is_concords(role: str, *names: str) -> str:
    """Condition on a row of `pg_roles`: its objects are taken for Concord's. `names` are the roles beside the current
    user and superusers."""
    return f"({role}.rolsuper OR {role}.rolname IN ({', '.join(['current_user', *map(literal, names)])}))"


def strangers(name: str, installer: str) -> str:
    """Query: each role that owns an object in Concord's schemas, but the role `name` and those of `is_concords`. With
    each role come descriptions of its objects, schemas first.

    The objects of a copied database belong to the owner role of the original. That role is accepted if no other login
    is a member of it. Staging tables belong to the applier and are not checked. PostgreSQL records no owner for objects
    of the bootstrap superuser.
    """
    return f"""
SELECT o.rolname::text AS owner, array_agg(pg_describe_object(m.classid, m.objid, 0)
         ORDER BY m.classid <> 'pg_namespace'::regclass, pg_describe_object(m.classid, m.objid, 0)) AS objects
  FROM (SELECT 'pg_namespace'::regclass AS classid, n.oid AS objid FROM pg_namespace n
         WHERE n.nspname IN ({", ".join(map(literal, SCHEMAS))})
        UNION
        SELECT d.classid, d.objid FROM pg_depend d
         WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = to_regnamespace('concord')) m
  JOIN pg_shdepend s ON s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND s.classid = m.classid AND s.objid = m.objid AND s.objsubid = 0 AND s.deptype = 'o'
  JOIN pg_roles o ON o.oid = s.refobjid
 WHERE NOT {is_concords("o", name, installer)}
   AND NOT (starts_with(o.rolname::text, {literal(OWNER_PREFIX)}) AND NOT o.rolcanlogin
            AND NOT EXISTS (SELECT FROM pg_auth_members a JOIN pg_roles r ON r.oid = a.member
                             WHERE a.roleid = o.oid AND NOT {is_concords("r", installer)}))
 GROUP BY 1"""


#: Query: who owns one of Concord's schemas and is neither Concord's role nor of `is_concords`, if anybody. Each session
#: asks it first, and takes no word from the session's settings: what it reads next stands in these schemas.
SQUATTER = f"""
SELECT pg_catalog.min(o.rolname::pg_catalog.text) FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_roles o ON o.oid OPERATOR(pg_catalog.=) n.nspowner
 WHERE n.nspname::pg_catalog.text OPERATOR(pg_catalog.=) ANY (ARRAY[{", ".join(map(literal, SCHEMAS))}])
   AND NOT (o.rolsuper OR o.rolname OPERATOR(pg_catalog.=) current_user
            OR pg_catalog.starts_with(o.rolname::pg_catalog.text, {literal(OWNER_PREFIX)}))"""


def squatted(owner: str, database: str) -> ConnectionRefused:
    """The error of a session whose first question found such an owner."""
    return ConnectionRefused(
        f"the schema {' or '.join(SCHEMAS)} of the database {database} belongs to {owner}, not to Concord; nothing in"
        f" it was read. Where a restore left Concord's objects to {owner}, run `provision` as {owner}, or let a"
        " superuser run ALTER SCHEMA … OWNER TO himself first; else drop or rename the schema"
    )


def refused_view(view: str) -> str:
    """Statement: fails if a relation of this name (as SQL) exists and is not Concord's."""
    return _refused(
        f"SELECT o.rolname FROM pg_class c JOIN pg_roles o ON o.oid = c.relowner"
        f" WHERE c.oid = to_regclass({literal(view)}) AND NOT {is_concords('o')}",
        f"{view} belongs to ",
    )


def refused_publication(name: str) -> str:
    """Statement: fails if a publication of this name exists and is not Concord's."""
    found = f"SELECT f.owner FROM ({publishers([name])}) f (name, owner)"
    return _refused(found, f"the publication {name} belongs to ")


def view_dropped(view: str) -> str:
    """Statement: the view, named as SQL, goes if it is Concord's; nothing is done to another one."""
    block = f"""
BEGIN
  IF EXISTS (SELECT FROM pg_class c JOIN pg_roles o ON o.oid = c.relowner
              WHERE c.oid = to_regclass({literal(view)}) AND {is_concords("o")}) THEN
    DROP VIEW {view};
  END IF;
END"""
    return f"DO {literal(block)}"


def publication_dropped(name: str) -> str:
    """Statement: the publication goes if it is Concord's; nothing is done to another one."""
    block = f"""
BEGIN
  IF EXISTS (SELECT FROM pg_publication p JOIN pg_roles o ON o.oid = p.pubowner
              WHERE p.pubname = {literal(name)} AND {is_concords("o")}) THEN
    DROP PUBLICATION {quote(name)};
  END IF;
END"""
    return f"DO {literal(block)}"


def refused_schemas(name: str, installer: str) -> str:
    """Statement: fails if another role owns an object in Concord's schemas. It may have been created after the site was
    surveyed."""
    found = f"SELECT s.objects[1] || ' belongs to ' || s.owner FROM ({strangers(name, installer)}) s LIMIT 1"
    return _refused(found, "")


def _refused(query: str, said: str) -> str:
    """Statement: fails with a message if `query` returns a name; it returns at most one row."""
    message = f"{literal(said)} || found || ', not to Concord: drop or rename it'"
    block = f"""
DECLARE
  found text := ({query});
BEGIN
  IF found IS NOT NULL THEN RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = 'duplicate_object'; END IF;
END"""
    return f"DO {literal(block)}"


def not_concords(publication: str, owner: str) -> str:
    """Words about a publication that `publishers` has found. A slot that is read needs the one that is there."""
    return (
        f"the publication {publication} belongs to {owner} and is not Concord's; if Concord made it, ALTER PUBLICATION"
        f" {quote(publication)} OWNER TO the installer, else drop it"
    )


def publishers(names: Collection[str]) -> str:
    """Query: the publications of these names that are not Concord's, each with its owner."""
    listed = ", ".join(["NULL", *map(literal, names)])
    return f"""
SELECT p.pubname::text, o.rolname::text FROM pg_publication p JOIN pg_roles o ON o.oid = p.pubowner
 WHERE p.pubname IN ({listed}) AND NOT {is_concords("o")} ORDER BY 1"""
