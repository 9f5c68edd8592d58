"""The role that owns what Concord keeps at a site: capture works with its rights, in the sessions of users.

It cannot log in and has no attribute, owns nothing else, and may read the captured tables. So whatever the owner of a
table or type gets a trigger to run does not run with the rights of whoever installed Concord. Roles belong to a whole
cluster, which may hold several sites: each database has one of its own. It is called after the database for which it
was made, and stays the same when that is renamed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, quote, shortened
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import ownership
from concord.databases.postgresql.facts.connection import Connection, one, rows
from concord.databases.postgresql.facts.own_schema import OWNER_PREFIX, SCHEMAS
from concord.databases.postgresql.facts.privileges import Grant, Kind
from concord.databases.postgresql.sites.site_facts import SiteFacts, has_attribute
from concord.messages.errors import ProvisioningRefused

ATTRIBUTES = "NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT"

#: Of the objects that one stranger has in Concord's schemas.
MOST_NAMED = 3

#: From this version on, a member says whether it inherits a role's rights, and whether it may act as the role.
OPTIONS = 160_000

_ELSEWHERE = """EXISTS (SELECT 1 FROM pg_shdepend e WHERE e.refclassid = 'pg_authid'::regclass AND e.refobjid = r.oid
                    AND e.deptype = 'o'
                    AND e.dbid NOT IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())))"""

#: Its name where Concord is; in a copy of the database that was not provisioned, the name of the original's.
NAME = f"""
SELECT pg_get_userbyid(r.oid)::text FROM (SELECT nspowner AS oid FROM pg_namespace WHERE nspname = 'concord') r
 WHERE pg_get_userbyid(r.oid) ^@ {literal(OWNER_PREFIX)}"""

#: The same where no other database has it: `provision` gives a copy a role of its own.
NAME_HERE = f"{NAME} AND NOT {_ELSEWHERE}"


def role(database: str) -> str:
    """Its name when it is made."""
    return shortened(OWNER_PREFIX + database)


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
    members: tuple[str, ...]  #: who else may act as the role, or admit others to it
    revocations: tuple[str, ...]  #: the statements of a superuser that end this


def read(connection: Connection, facts: SiteFacts, name: str) -> Standing:
    """Reads only."""
    found = one(connection, _QUERY.format(name=literal(name), able=_able("r.oid", "me.oid", facts.version)))
    unfit, usable, givable, others, movable, members, revocations = found
    return Standing(
        site=facts.site,
        role=name,
        user=facts.user,
        unfit=unfit,
        usable=usable,
        givable=givable,
        others=tuple(others),
        movable=movable,
        members=tuple(members),
        revocations=tuple(revocations),
    )


def _able(of: str, user: str, version: int) -> str:
    """Condition: the user has the role's rights, and may hand objects over to it."""
    inherits = f"pg_has_role({user}, {of}, 'USAGE')"
    return f"({inherits} AND pg_has_role({user}, {of}, 'SET'))" if version >= OPTIONS else inherits


_ITS_OWN = f"(SELECT oid FROM pg_namespace WHERE nspname IN ({', '.join(map(literal, SCHEMAS))}))"

_OWNERS = f"""
SELECT nspowner AS owner FROM pg_namespace WHERE oid IN {_ITS_OWN} UNION
SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace('concord') UNION
SELECT proowner FROM pg_proc WHERE pronamespace = to_regnamespace('concord')"""

#: The objects that a role `r` owns here or in the whole cluster, and that are none of Concord's.
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
_ADMITS = f"""(current_setting('server_version_num')::int < {OPTIONS}
                 OR pg_has_role(me.oid, r.oid, 'MEMBER WITH ADMIN OPTION'))"""

#: Of the role: whoever else is a member, by whose grant. With the option ADMIN alone one may give oneself the others.
_MEMBERS = """
  FROM pg_auth_members m JOIN pg_roles o ON o.oid = m.roleid
  JOIN pg_roles w ON w.oid = m.member JOIN pg_roles g ON g.oid = m.grantor
 WHERE o.rolname = {name} AND NOT w.rolsuper AND w.rolname <> {installer}"""

_OTHERS_THAN_ME = _MEMBERS.replace("{installer}", "current_user")

#: A superuser takes back what another one granted only if he names him; until PostgreSQL 15 that did not matter.
_REVOCATION = f"""format('REVOKE %I FROM %I', o.rolname, w.rolname)
                || CASE WHEN current_setting('server_version_num')::int >= {OPTIONS}
                        THEN format(' GRANTED BY %I CASCADE', g.rolname) ELSE '' END"""

_QUERY = f"""
WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user),
     r AS (SELECT * FROM pg_roles WHERE rolname = {{name}}),
     others AS (SELECT o.rolname, pg_has_role(o.oid, 'USAGE') AS mine
                  FROM ({_OWNERS}) w JOIN pg_roles o ON o.oid = w.owner WHERE o.rolname <> {{name}})
SELECT CASE WHEN r.rolcanlogin THEN 'may log in'
            WHEN {has_attribute("r")} THEN 'has an attribute that gives it more rights'
            WHEN EXISTS (SELECT 1 FROM pg_auth_members m WHERE m.member = r.oid) THEN 'is a member of another role'
            WHEN {_ELSEWHERE} AND NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = 'concord' AND nspowner = r.oid)
            THEN 'owns something in another database'
            ELSE (SELECT 'owns ' || min(pg_describe_object(d.classid, d.objid, 0)){_OWNED}) END,
       r.oid IS NOT NULL AND {{able}},
       me.rolsuper OR me.rolcreaterole AND (r.oid IS NULL OR {_ADMITS}),
       array(SELECT rolname::text FROM others ORDER BY 1), (SELECT coalesce(bool_and(mine), true) FROM others),
       array(SELECT DISTINCT w.rolname::text {_OTHERS_THAN_ME} ORDER BY 1),
       array(SELECT {_REVOCATION} {_OTHERS_THAN_ME} ORDER BY 1)
  FROM me LEFT JOIN r ON true"""


def problems(standing: Standing) -> Iterator[str]:
    """Why a role that is there must not own Concord's objects."""
    if standing.unfit is not None:
        yield (
            f"{standing.site}: the role {standing.role}, which is to own what Concord keeps, {standing.unfit}; it must"
            " be nobody's and able to do nothing else: drop or rename it, and `provision` makes it anew"
        )
    if standing.members:
        yield (
            f"{standing.site}: {', '.join(standing.members)} may act as {standing.role}, or admit others to it, and it"
            f" owns what Concord keeps; let a superuser run {'; '.join(standing.revocations)}"
        )


def refuse_strangers(connection: Connection, facts: SiteFacts, name: str) -> None:
    """Reads the catalogue alone: nothing else may be read before, since an object of somebody else's may have been made
    to be found. Raises ProvisioningRefused, which names such objects in Concord's schemas."""
    lines = [
        f"{facts.site}: {_listed(objects)} belongs to {stranger}, and the schemas {' and '.join(SCHEMAS)} are Concord's"
        f" alone; drop or rename it. If it is Concord's, and its owner was changed: ALTER … OWNER TO {quote(name)}"
        for stranger, objects in rows(connection, f"{ownership.strangers(name, facts.user)} ORDER BY 1")
    ]
    if lines:
        raise ProvisioningRefused("\n".join(lines))


def _listed(objects: Sequence[str]) -> str:
    more = len(objects) - MOST_NAMED
    return ", ".join([*objects[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def deviations(standing: Standing) -> Iterator[str]:
    """The objects that are not as they were provisioned."""
    if standing.others:
        yield (
            f"{standing.site}: {', '.join(standing.others)} owns something of Concord's, which"
            f" {standing.role} should; run `provision`"
        )


def needed(name: str, shadow: Shadow) -> Iterator[Grant]:
    """The rights on a table that triggers need: to ask for a row."""
    if shadow.has_triggers:
        table = shadow.table.name
        yield Grant(name, ("USAGE",), Kind.SCHEMA, (table.schema_name,))
        yield Grant(name, ("SELECT",), Kind.TABLE, (table.schema_name, table.name))


def statements(name: str, installer: str, version: int) -> list[str]:
    """Make the role where it is missing, let the installer act as it, and give it Concord's schemas; idempotent.

    Nothing is asked for that is there: whoever provisions again need not be allowed to make it.
    """
    schemas = [
        _unless(
            f"to_regnamespace({literal(schema)}) IS NOT NULL",
            f"CREATE SCHEMA {schema} AUTHORIZATION {quote(name)}",
        )
        for schema in SCHEMAS
    ]
    return [*creation(name, installer, version), *schemas]


def creation(name: str, installer: str, version: int) -> list[str]:
    """The role alone, and that the installer may act as it."""
    options = " WITH INHERIT TRUE, SET TRUE" if version >= OPTIONS else ""
    return [
        _unless(
            f"EXISTS (SELECT 1 FROM pg_roles WHERE rolname = {literal(name)})",
            f"CREATE ROLE {quote(name)} {ATTRIBUTES}",
        ),
        _unless(
            _able(literal(name), literal(installer), version),
            f"GRANT {quote(name)} TO {quote(installer)}{options}",
        ),
        _nobody_elses(name, installer),
    ]


def _nobody_elses(name: str, installer: str) -> str:
    """Statement: fails where another login has made the role, and may act as it, since the role was looked at."""
    members = _MEMBERS.format(name=literal(name), installer=literal(installer))
    said = literal(f"others may act as the role {name}; `provision --check` names them")
    return _unless(f"NOT EXISTS (SELECT 1 {members})", f"RAISE EXCEPTION USING MESSAGE = {said}")


def other_members(name: str, installer: str) -> str:
    """Query: who may act as the role but the installer and superusers, and the statements that take it back; or NULL
    twice."""
    members = _MEMBERS.format(name=literal(name), installer=literal(installer))
    return f"""
SELECT string_agg(DISTINCT quote_ident(w.rolname), ', '), string_agg(DISTINCT {_REVOCATION} || ';', ' '){members}"""


def _unless(condition: str, statement: str) -> str:
    block = f"BEGIN IF NOT ({condition}) THEN {statement}; END IF; END"
    return f"DO {literal(block)}"


def handed_over(name: str, installer: str) -> list[str]:
    """Statements: the role gets all that the installer or a superuser made in Concord's schemas, now or by an older
    Concord. They fail where there is an object of anybody else's."""
    mine = f"{literal(quote(name))}::regrole"
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
    return [ownership.refused_schemas(name, installer), f"DO {literal(block)}"]


def removal(name: str) -> str:
    """Statement: after Concord's objects, the role's rights go, and the role itself where the installer may drop it.

    Not where it owns something: that is no longer the role that Concord made.
    """
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
