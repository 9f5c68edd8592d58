"""A site's database as it says itself: which it is, of which version, and who owns what Concord keeps there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from psycopg.rows import dict_row

from concord.databases.postgresql.facts.catalogue import Row
from concord.databases.postgresql.facts.connection import Connection, answers
from concord.databases.postgresql.facts.own_schema import IDENTITY


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """The facts of a whole site when it is looked at."""

    site: str
    database: str
    identity: str
    version: int
    in_recovery: bool
    clock_ahead: float  #: seconds ahead of the controller
    provisioned_as: str | None  #: the site name found in the database
    provisioned_identity: str | None
    format: int = 0  #: of Concord's own objects; 0 where there are none
    user: str = ""  #: the login that looked
    others: tuple[str, ...] = ()  #: who owns what Concord's own role should

    def provisioned(self, site: Row | None) -> SiteFacts:
        """With the row that PROVISIONED has, if any."""
        if site is None:
            return self
        return replace(
            self,
            provisioned_as=site["name"],
            provisioned_identity=site["identity"],
            format=site["format"],
            others=tuple(site["others"]),
        )


#: The first question about a site, which whoever may log in may ask.
FACTS = f"""
SELECT current_database()::text AS database, current_user::text AS login, ({IDENTITY}) AS identity,
       current_setting('server_version_num')::int AS version, pg_is_in_recovery() AS in_recovery,
       extract(epoch FROM clock_timestamp())::float8 AS clock,
       EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'concord' AND c.relname = 'site') AS there"""


def has_attribute(role: str) -> str:
    """Condition on a row of `pg_roles`: the role, once acted as, can do more than it was granted."""
    attributes = ("rolsuper", "rolcreatedb", "rolcreaterole", "rolreplication", "rolbypassrls")
    return f"({' OR '.join(f'{role}.{each}' for each in attributes)})"


#: Owners of what stands in schema `concord` but the schema's own; and that one, where it can do more than own. A
#: restore without owners leaves all to whoever restored.
_OTHERS = f"""
array(SELECT o.rolname::text FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner
       WHERE n.nspname = 'concord'
         AND (o.rolcanlogin OR {has_attribute("o")})
      UNION
      SELECT pg_get_userbyid(coalesce(f.proowner, c.relowner))::text FROM pg_namespace n
        JOIN pg_depend d ON d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid
        LEFT JOIN pg_proc f ON d.classid = 'pg_proc'::regclass AND f.oid = d.objid
        LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid AND c.relkind IN ('r', 'v')
       WHERE n.nspname = 'concord' AND coalesce(f.proowner, c.relowner) <> n.nspowner ORDER BY 1)"""


#: How the site was provisioned, where it was.
PROVISIONED = f"SELECT name, identity, format, {_OTHERS} AS others FROM concord.site"


def read_facts(connection: Connection, site: str, controller_clock: float) -> SiteFacts:
    """Facts of the site behind `connection`; `controller_clock` is seconds since 1970, read just before."""
    [[seen]] = answers(connection, FACTS, row_factory=dict_row)
    facts = facts_of(site, seen, controller_clock)
    if not seen["there"]:
        return facts
    [found] = answers(connection, PROVISIONED, row_factory=dict_row)
    return facts.provisioned(next(iter(found), None))


def facts_of(site: str, seen: Row, controller_clock: float) -> SiteFacts:
    """The words of the answer to FACTS."""
    ahead = seen["clock"] - controller_clock
    found = (seen["database"], seen["identity"], seen["version"], seen["in_recovery"])
    return SiteFacts(site, *found, ahead, None, None, user=seen["login"])
