"""The role that owns what Concord keeps at a site: capture works with its rights, in the sessions of users.

It cannot log in and has no attribute, owns nothing else, and may read the captured tables. So whatever the owner of a
table or type gets a trigger to run does not run with the rights of whoever installed Concord. Roles belong to a whole
cluster, which may hold several sites: each database has one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from concord.databases.postgresql.capture import Shadow
from concord.databases.postgresql.preflight import SiteFacts
from concord.databases.postgresql.privileges import Grant, Kind
from concord.databases.postgresql.session import Connection, one
from concord.databases.quoting import literal, quote, shortened

#: Concord's own at a site. What stands in staging belongs to the applier, who makes it.
SCHEMAS = ("concord", "concord_staging")

ATTRIBUTES = "NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"

#: From this version on, a member says whether it inherits a role's rights, and whether it may act as the role.
_OPTIONS = 160_000


def role(database: str) -> str:
    """What it is called."""
    return shortened(f"concord_owner_of_{database}")


@dataclass(frozen=True, slots=True)
class Standing:
    """How the role stands at a site, and what whoever looked may do about it."""

    site: str
    role: str
    user: str  #: the installer, who looked
    unfit: str | None  #: why a role of this name must not own Concord's objects
    usable: bool  #: the installer may act as the role
    givable: bool  #: the installer may make the role where it is missing, and act as it from then on
    others: tuple[str, ...]  #: who else owns something of Concord's
    movable: bool  #: and the installer may act as all of these
    members: tuple[str, ...]  #: who else may act as the role


def read(connection: Connection, facts: SiteFacts) -> Standing:
    """Reads only."""
    name = role(facts.database)
    found = one(connection, _QUERY.format(name=literal(name), able=_able("r.oid", "me.oid", facts.version)))
    unfit, usable, givable, others, movable, members = found
    return Standing(
        facts.site, name, facts.user, unfit, usable, givable, tuple(others), movable, tuple(members)
    )


def _able(of: str, user: str, version: int) -> str:
    """Condition: the user has the role's rights, and may hand objects over to it."""
    inherits = f"pg_has_role({user}, {of}, 'USAGE')"
    return f"({inherits} AND pg_has_role({user}, {of}, 'SET'))" if version >= _OPTIONS else inherits


_ITS_OWN = f"(SELECT oid FROM pg_namespace WHERE nspname IN ({', '.join(map(literal, SCHEMAS))}))"

_OWNERS = f"""
SELECT nspowner AS owner FROM pg_namespace WHERE oid IN {_ITS_OWN} UNION
SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace('concord') UNION
SELECT proowner FROM pg_proc WHERE pronamespace = to_regnamespace('concord')"""

#: What a role `r` owns here or in the whole cluster, and is none of Concord's.
_OWNED = f"""
  FROM pg_shdepend d
 WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid AND d.deptype = 'o'
   AND d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
   AND NOT (d.classid = 'pg_namespace'::regclass AND d.objid IN {_ITS_OWN})
   AND NOT (d.classid = 'pg_class'::regclass
            AND EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = d.objid AND c.relnamespace IN {_ITS_OWN}))
   AND NOT (d.classid = 'pg_proc'::regclass
            AND EXISTS (SELECT 1 FROM pg_proc f WHERE f.oid = d.objid AND f.pronamespace IN {_ITS_OWN}))"""

#: Whoever may make roles may also admit to a role `r`, and drop it: until PostgreSQL 15 any, and since then his own.
_ADMITS = f"""(current_setting('server_version_num')::int < {_OPTIONS}
                 OR pg_has_role(me.oid, r.oid, 'MEMBER WITH ADMIN OPTION'))"""

_QUERY = f"""
WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user),
     r AS (SELECT * FROM pg_roles WHERE rolname = {{name}}),
     others AS (SELECT o.rolname, pg_has_role(o.oid, 'USAGE') AS mine
                  FROM ({_OWNERS}) w JOIN pg_roles o ON o.oid = w.owner WHERE o.rolname <> {{name}})
SELECT CASE WHEN r.rolcanlogin THEN 'may log in'
            WHEN r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls
            THEN 'has an attribute that gives it more rights'
            WHEN EXISTS (SELECT 1 FROM pg_auth_members m WHERE m.member = r.oid) THEN 'is a member of another role'
            ELSE (SELECT 'owns ' || min(pg_describe_object(d.classid, d.objid, 0)){_OWNED}) END,
       r.oid IS NOT NULL AND {{able}},
       me.rolsuper OR me.rolcreaterole AND (r.oid IS NULL OR {_ADMITS}),
       array(SELECT rolname::text FROM others ORDER BY 1), (SELECT coalesce(bool_and(mine), true) FROM others),
       array(SELECT w.rolname::text FROM pg_auth_members m JOIN pg_roles w ON w.oid = m.member
              WHERE m.roleid = r.oid AND w.oid <> me.oid AND NOT w.rolsuper ORDER BY 1)
  FROM me LEFT JOIN r ON true"""


def problems(standing: Standing) -> Iterator[str]:
    """Why a role that is there must not own Concord's objects."""
    if standing.unfit is not None:
        yield (
            f"{standing.site}: the role {standing.role}, which is to own what Concord keeps, {standing.unfit}; it must"
            " be nobody's and able to do nothing else: drop or rename it, and `provision` makes it anew"
        )


def refusals(standing: Standing) -> Iterator[str]:
    """Why this installer cannot provision, whoever else can."""
    if not (standing.usable or standing.givable) or not standing.movable:
        yield (
            f"{standing.site}: {standing.user} can neither make the role {standing.role}, which is to own what"
            " Concord keeps, nor act as it; let a superuser run the output of `provision --print-sql` once, and"
            f" {standing.user} can provision from then on"
        )


def deviations(standing: Standing) -> Iterator[str]:
    """What is not as it was provisioned."""
    if standing.others:
        yield (
            f"{standing.site}: {', '.join(standing.others)} owns something of Concord's, which"
            f" {standing.role} should; run `provision`"
        )
    if standing.members:
        yield (
            f"{standing.site}: {', '.join(standing.members)} may act as {standing.role}, which owns what Concord keeps;"
            f" REVOKE {quote(standing.role)} FROM {', '.join(map(quote, standing.members))}"
        )


def needed(database: str, shadow: Shadow) -> Iterator[Grant]:
    """What capture needs of a table: to ask for a row. With marks of the application, nothing captures."""
    if shadow.marks is None:
        name = shadow.table.name
        yield Grant(role(database), ("USAGE",), Kind.SCHEMA, (name.schema_name,))
        yield Grant(role(database), ("SELECT",), Kind.TABLE, (name.schema_name, name.name))


def may_look(connection: Connection) -> bool:
    """Whether what Concord keeps, if anything, can be read at all."""
    seen = "coalesce(has_schema_privilege(to_regnamespace('concord'), 'USAGE'), true)"
    return bool(one(connection, f"SELECT {seen}")[0])


def admission(connection: Connection) -> list[str]:
    """What a superuser runs for an installer that may not look: then the installer provisions."""
    database, user = one(connection, "SELECT current_database()::text, current_user::text")
    return [*statements(database, user, connection.info.server_version), handed_over(database)]


def statements(database: str, installer: str, version: int) -> list[str]:
    """Make the role where it is missing, let the installer act as it, and give it Concord's schemas; idempotent.

    Nothing is asked for that is there: whoever provisions again need not be allowed to make it.
    """
    name = role(database)
    schemas = [
        _unless(
            f"to_regnamespace({literal(schema)}) IS NOT NULL",
            f"CREATE SCHEMA {schema} AUTHORIZATION {quote(name)}",
        )
        for schema in SCHEMAS
    ]
    return [*creation(database, installer, version), *schemas]


def creation(database: str, installer: str, version: int) -> list[str]:
    """The role alone, and that the installer may act as it."""
    name = role(database)
    options = " WITH INHERIT TRUE, SET TRUE" if version >= _OPTIONS else ""
    return [
        _unless(
            f"EXISTS (SELECT 1 FROM pg_roles WHERE rolname = {literal(name)})",
            f"CREATE ROLE {quote(name)} {ATTRIBUTES}",
        ),
        _unless(
            _able(literal(name), literal(installer), version),
            f"GRANT {quote(name)} TO {quote(installer)}{options}",
        ),
    ]


def _unless(condition: str, statement: str) -> str:
    block = f"BEGIN IF NOT ({condition}) THEN {statement}; END IF; END"
    return f"DO {literal(block)}"


def handed_over(database: str) -> str:
    """Statement: the role gets all of Concord's that was made by others, now or by an older Concord."""
    name = role(database)
    mine = f"{literal(name)}::regrole"
    block = f"""
DECLARE
  made text;
BEGIN
  FOR made IN
    SELECT x.made FROM (
      SELECT 1, format('SCHEMA %I', nspname) FROM pg_namespace WHERE oid IN {_ITS_OWN} AND nspowner <> {mine}
      UNION ALL
      SELECT 2, format('TABLE %s', oid::regclass) FROM pg_class
       WHERE relnamespace = 'concord'::regnamespace AND relkind IN ('r', 'v') AND relowner <> {mine}
      UNION ALL
      SELECT 2, format('FUNCTION %s', oid::regprocedure) FROM pg_proc
       WHERE pronamespace = 'concord'::regnamespace AND proowner <> {mine}) x (place, made) ORDER BY x.place
  LOOP
    EXECUTE 'ALTER ' || made || {literal(f" OWNER TO {quote(name)}")};
  END LOOP;
END"""
    return f"DO {literal(block)}"


def removal(database: str) -> str:
    """Statement: after Concord's objects, the role's rights go, and the role itself where the installer may drop it.

    Not where it owns something: that is no longer the role that Concord made.
    """
    name = role(database)
    block = f"""
DECLARE
  r record;
BEGIN
  SELECT oid, rolname INTO r FROM pg_roles WHERE rolname = {literal(name)};
  IF NOT FOUND OR NOT pg_has_role(r.oid, 'USAGE') OR EXISTS (SELECT 1 {_OWNED}) THEN RETURN; END IF;
  DROP OWNED BY {quote(name)};
  IF (SELECT me.rolsuper OR me.rolcreaterole AND {_ADMITS} FROM pg_roles me WHERE me.rolname = current_user)
     AND NOT EXISTS (SELECT 1 FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = r.oid)
  THEN
    DROP ROLE {quote(name)};
  END IF;
END"""
    return f"DO {literal(block)}"
