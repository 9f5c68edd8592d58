"""Provisioned databases, copied from templates: PostgreSQL copies one in an eighth of the time that provisioning takes.

A template is named by a key of all that shaped it: the statements that made its tables, the topology, how changes
are captured. The first use of a key provisions the databases that become its templates. Tests of provisioning itself
take no copies.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import psycopg

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.facts.own_schema import IDENTITY
from concord.databases.postgresql.sites import owner
from tests.conftest import Database, MakeDatabase, ServerOf

#: Keys whose templates are kept at a time. The tests of a file share one or two.
KEPT = 8


class Provisioned(NamedTuple):
    """Databases by the names of their sites, and what else the function returned that provisioned them."""

    databases: Mapping[str, Database]
    result: Any


class TemplateDatabases:
    """The templates of the shared servers."""

    def __init__(self, server_of: ServerOf) -> None:
        self._server_of = server_of
        self._templates: OrderedDict[Hashable, Provisioned] = OrderedDict()
        self._made = 0

    def copied(
        self, key: Hashable, provision: Callable[[MakeDatabase], Provisioned], database: MakeDatabase
    ) -> Provisioned:
        """Copies of the databases that `provision` makes, and its result.

        `provision` is called once a key, with a function that returns an empty database on the server of a site. It
        must leave no connection and no replication slot. `database` makes the copies.
        """
        if key not in self._templates:
            self._templates[key] = provision(self._empty)
            self._end_sessions(self._templates[key])
        self._templates.move_to_end(key)
        while len(self._templates) > KEPT:
            _, oldest = self._templates.popitem(last=False)
            for each in oldest.databases.values():
                each.server.drop_database(each.name)
        originals, result = self._templates[key]
        copies = {site: database(original.name, site) for site, original in originals.items()}
        for site, copy in copies.items():
            _become_a_site(copy, originals[site])
        return Provisioned(copies, result)

    def _end_sessions(self, template: Provisioned) -> None:
        """A database with sessions cannot be copied; those that were closed may take a moment to end."""
        end = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = %s"
        for each in template.databases.values():
            with psycopg.connect(each.server.uri("postgres"), autocommit=True) as superuser:
                superuser.execute(end, [each.name])

    def _empty(self, template: str = "template1", site: str = "london") -> Database:
        self._made += 1
        name, server = f"template_of_tests_{self._made}", self._server_of(site)
        server.create_database(name, template)
        return Database(name, server.uri(name), server)


def _become_a_site(copy: Database, original: Database) -> None:
    """Give the copy an owner role and an identity of its own, and the rights that were granted on the original."""
    statement = _BECOME_A_SITE.format(
        former=literal(owner.role(original.name)),
        role=literal(owner.role(copy.name)),
        attributes=owner.ATTRIBUTES,
        original=literal(original.name),
        copy=literal(quote(copy.name)),
        identity=IDENTITY,
    )
    with psycopg.connect(copy.uri, autocommit=True) as connection:
        connection.execute(statement.encode())


#: CREATE DATABASE does not copy privileges on the database: they are in pg_database, a shared catalog.
_BECOME_A_SITE = """
DO $do$
DECLARE
  statement text;
BEGIN
  EXECUTE format('CREATE ROLE %I {attributes}', {role});
  EXECUTE format('REASSIGN OWNED BY %I TO %I', {former}, {role});
  FOR statement IN
    SELECT format('GRANT %s ON %s TO %I', string_agg(given.privilege_type, ', '), object.name, {role})
      FROM (SELECT nspacl, format('SCHEMA %I', nspname) FROM pg_namespace
            UNION ALL
            SELECT relacl, format('TABLE %s', oid::regclass) FROM pg_class) object (acl, name),
           aclexplode(object.acl) given
     WHERE given.grantee = {former}::regrole
     GROUP BY object.name
    UNION ALL
    SELECT format('GRANT %s ON DATABASE %s TO %I', string_agg(given.privilege_type, ', '), {copy},
                  coalesce(nullif(r.rolname, {former}), {role}))
      FROM pg_database, aclexplode(datacl) given JOIN pg_roles r ON r.oid = given.grantee
     WHERE datname = {original}
     GROUP BY r.rolname
  LOOP
    EXECUTE statement;
  END LOOP;
  EXECUTE format('DROP OWNED BY %I', {former});
  UPDATE concord.site SET identity = ({identity});
END $do$"""
