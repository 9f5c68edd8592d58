"""A user of the database has made objects under Concord's names before Concord comes. None is read, called, altered
or handed over, and the refusal names it and its owner."""

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.contract.arrivals import WatchedLink
from concord.databases.postgresql.facts import connection as connections
from concord.databases.postgresql.rows.listen import arrivals
from concord.databases.postgresql.sites import owner
from concord.databases.provisioning import Installation
from concord.messages.errors import ConcordError, ConnectionRefused, ProvisioningRefused
from concord.tables.replication_set import Marks, ReplicatedTable, TableName
from embedded.postgres import Server
from tests.conftest import Database
from tests.databases.postgresql.installers import new_installer, refused, run_by_a_superuser
from tests.given.bare_sites import Bare, installation
from tests.given.fixtures import site_on
from tests.given.replicated_sites import Replicated
from tests.given.site import APPLIER, READER, Site, every_table

TABLE = (
    "CREATE TABLE public.person (id int PRIMARY KEY, name text, updated_at timestamptz NOT NULL DEFAULT now(),"
    " is_deleted boolean NOT NULL DEFAULT false)",
    "CREATE INDEX ON public.person (updated_at)",
    "CREATE TABLE public.salary (person int PRIMARY KEY, amount int)",
    "INSERT INTO public.salary VALUES (1, 100)",
)

#: Who has run her code.
LOOT = ("CREATE TABLE public.loot (who name)", "GRANT INSERT ON public.loot TO PUBLIC")

#: Her code, whatever calls it.
STEAL = (
    "CREATE FUNCTION {schema}.steal() RETURNS text LANGUAGE plpgsql AS"
    " $$BEGIN INSERT INTO public.loot VALUES (current_user); RETURN 'london'; END$$"
)


@pytest.fixture
def mallory(server_with_logins: Server) -> str:
    """A login that may create schemas in the database, and no more."""
    return new_installer(server_with_logins)


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database], mallory: str) -> Iterator[Site]:
    london = site_on(server_with_logins, "london", database().name)
    london.run(*TABLE, f'GRANT CREATE ON DATABASE "{london.database}" TO {mallory}')
    yield london
    london.connection.close()


def asked(site: Site, installer: str | None = None, **changed: Any) -> list[Installation]:
    tables = tuple(each for each in every_table(site) if each.table.name == "person")
    wanted = installation(site, tables, **changed)
    return [replace(wanted, installer=site.credentials(installer or site.superuser))]


def by(site: Site, user: str, *statements: str) -> None:
    """In a session of that login."""
    with site.log_in(user) as session:
        for statement in statements:
            session.execute(statement.encode())


def victims(site: Site) -> list[str]:
    """The roles with whose rights her code ran."""
    return [who for (who,) in site.rows("SELECT who FROM public.loot")]


def opened(schema: str) -> list[str]:
    """Everybody may use what she has made."""
    return [
        f"GRANT ALL ON SCHEMA {schema} TO PUBLIC",
        f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO PUBLIC",
    ]


#: What she lays out before Concord comes.
SQUATTED = {
    "a table with a trigger": (
        "CREATE SCHEMA concord",
        STEAL.format(schema="concord"),
        "CREATE FUNCTION concord.fire() RETURNS trigger LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM concord.steal(); RETURN NEW; END$$",
        "CREATE TABLE concord.secret (only_row boolean PRIMARY KEY DEFAULT true, value bytea)",
        "CREATE TRIGGER fire BEFORE INSERT ON concord.secret FOR EACH ROW EXECUTE FUNCTION concord.fire()",
        *opened("concord"),
    ),
    "a view that calls a function": (
        "CREATE SCHEMA concord",
        STEAL.format(schema="concord"),
        "CREATE VIEW concord.site AS SELECT concord.steal() AS name, 1 AS incarnation, ''::text AS identity,"
        " 25 AS format",
        *opened("concord"),
    ),
    "the schema of staged rows": ("CREATE SCHEMA concord_staging", *opened("concord_staging")),
}


@pytest.mark.parametrize("squatted", SQUATTED)
def test_a_schema_of_somebody_elses_is_refused_before_anything_in_it_is_read(
    site: Site, mallory: str, squatted: str
) -> None:
    site.run(*LOOT)
    by(site, mallory, *SQUATTED[squatted])
    before = site.rows("SELECT oid, nspowner, nspacl::text FROM pg_namespace WHERE nspname ~ '^concord'")

    for act in (provisioning.provision, provisioning.remove, provisioning.sql):
        with pytest.raises(ConcordError) as told:
            list(act(asked(site)) or ())  # type: ignore[operator]
        assert f"belongs to {mallory}, not to Concord" in told.value.message
    assert any(f"belongs to {mallory}" in line for line in provisioning.check(asked(site)))
    for login in (READER, APPLIER, site.superuser):
        with pytest.raises(ConnectionRefused, match=f"belongs to {mallory}, not to Concord"):
            connections.connect(site.credentials(login))

    assert victims(site) == []
    assert (
        site.rows("SELECT oid, nspowner, nspacl::text FROM pg_namespace WHERE nspname ~ '^concord'") == before
    )
    with pytest.raises(ConnectionRefused, match=f"belongs to {mallory}, not to Concord"):
        asyncio.run(first_arrival(site))
    assert victims(site) == []
    site.run("DROP SCHEMA IF EXISTS concord, concord_staging CASCADE", "DROP TABLE public.loot")
    provisioning.provision(asked(site))
    assert provisioning.check(asked(site)) == []


async def first_arrival(site: Site) -> None:
    """As a watch begins."""
    link = WatchedLink("link", "london", "capetown", frozenset(["public.person"]))
    async for _ in arrivals(site.credentials(READER), link, listen=True, poll=None):
        return


def test_a_schema_that_was_made_after_the_script_was_printed_stops_the_script(
    site: Site, mallory: str, server_with_logins: Server
) -> None:
    """Her function would get Concord's own role as its owner, and keep SECURITY DEFINER."""
    installer = new_installer(server_with_logins)
    site.run(f"ALTER TABLE public.person OWNER TO {installer}")
    ((_, script),) = provisioning.sql(asked(site, installer))
    by(
        site,
        mallory,
        "CREATE SCHEMA concord",
        "CREATE FUNCTION concord.read() RETURNS SETOF public.salary LANGUAGE sql SECURITY DEFINER AS"
        " 'TABLE public.salary'",
    )
    with pytest.raises(psycopg.errors.DuplicateObject, match=f"belongs to {mallory}, not to Concord"):
        site.connection.execute(script.encode())
    site.connection.rollback()
    assert site.value("SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'read'") == mallory
    assert site.rows(f"SELECT FROM pg_roles WHERE rolname = '{owner.role(site.database)}'") == []


def test_a_role_that_is_called_like_concords_own_is_a_strangers_where_somebody_else_may_act_as_it(
    site: Site, mallory: str
) -> None:
    """The role of another database is not: a copy of a site belongs to the role of the original."""
    provisioning.provision(asked(site))
    name = f"concord_owner_of_{mallory}"
    site.run(f"CREATE ROLE {name}", f"ALTER FUNCTION concord.refuse_truncate() OWNER TO {name}")
    provisioning.provision(asked(site))
    site.run(f"ALTER FUNCTION concord.refuse_truncate() OWNER TO {name}", f"GRANT {name} TO {mallory}")
    assert f"function concord.refuse_truncate() belongs to {name}" in refused(asked(site))


#: Objects of every kind that a schema may hold.
KINDS = {
    "table concord.it": "CREATE TABLE concord.it (id int)",
    "view concord.it": "CREATE VIEW concord.it AS SELECT 1 AS one",
    "sequence concord.it": "CREATE SEQUENCE concord.it",
    "function concord.it()": "CREATE FUNCTION concord.it() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "type concord.it": "CREATE TYPE concord.it AS ENUM ('one')",
    "collation concord.it": "CREATE COLLATION concord.it (locale = 'C')",
    "operator concord.=#=(integer,integer)": "CREATE OPERATOR concord.=#= (FUNCTION = int4eq, LEFTARG = int,"
    " RIGHTARG = int)",
    "text search dictionary concord.it": "CREATE TEXT SEARCH DICTIONARY concord.it (TEMPLATE = simple)",
}


@pytest.mark.parametrize("described", KINDS)
def test_an_object_of_somebody_elses_in_concords_schema_is_refused_by_name(
    site: Site, mallory: str, described: str
) -> None:
    """A right to create there that somebody granted; whoever looks at the site is told."""
    provisioning.provision(asked(site))
    site.run(f"GRANT ALL ON SCHEMA concord TO {mallory}")
    by(site, mallory, KINDS[described])
    said = (
        f"london: {described} belongs to {mallory}, and the schemas concord and concord_staging are Concord's"
    )
    assert said in refused(asked(site))
    assert any(said in line for line in provisioning.check(asked(site)))
    with pytest.raises(ProvisioningRefused, match=f"belongs to {mallory}"):
        provisioning.remove(asked(site))
    by(
        site,
        mallory,
        f"DROP {described.split(maxsplit=1)[0] if 'search' not in described else 'TEXT SEARCH DICTIONARY'}"
        f" {described.rsplit(maxsplit=1)[-1]}",
    )
    provisioning.provision(asked(site))


def test_no_function_of_concords_that_got_another_owner_is_altered_until_somebody_says_whose_it_is(
    site: Site, mallory: str
) -> None:
    provisioning.provision(asked(site))
    name = owner.role(site.database)
    site.run(f"ALTER FUNCTION concord.refuse_truncate() OWNER TO {mallory}")
    said = refused(asked(site))
    assert f"function concord.refuse_truncate() belongs to {mallory}" in said
    assert f'ALTER … OWNER TO "{name}"' in said
    site.run(f'ALTER FUNCTION concord.refuse_truncate() OWNER TO "{name}"')
    provisioning.provision(asked(site))
    assert provisioning.check(asked(site)) == []


LIVE = TableName(schema_name="shown", name="live")


def marked(site: Site, installer: str | None = None) -> list[Installation]:
    (each,) = asked(site, installer)
    (person,) = each.tables
    marks = Marks(changed_at="updated_at", deleted="is_deleted", view=LIVE)
    return [replace(each, tables=(person.model_copy(update={"tracking": marks}),))]


@pytest.mark.parametrize("by_superuser", [True, False])
def test_a_view_of_somebody_elses_is_neither_replaced_nor_handed_over(
    site: Site, mallory: str, server_with_logins: Server, by_superuser: bool
) -> None:
    """It reads a table that she may not read, and says that it is Concord's."""
    installer = site.superuser if by_superuser else new_installer(server_with_logins)
    site.run(
        "CREATE SCHEMA shown",
        "GRANT ALL ON SCHEMA shown TO PUBLIC",
        f'ALTER TABLE public.person OWNER TO "{installer}"',
    )
    by(
        site,
        mallory,
        "CREATE VIEW shown.live AS SELECT person AS id, amount FROM public.salary",
        "COMMENT ON VIEW shown.live IS 'Concord: the rows of public.person that are not deleted'",
    )
    said = f"london: shown.live exists, belongs to {mallory} and is not Concord's"
    assert said in refused(marked(site, installer))
    with pytest.raises(ProvisioningRefused, match=f"belongs to {mallory}"):
        list(provisioning.sql(marked(site, installer)))
    assert site.value("SELECT relowner::regrole::text FROM pg_class WHERE relname = 'live'") == mallory
    site.run("DROP VIEW shown.live")
    if not by_superuser:
        ((_, script),) = provisioning.sql(marked(site, installer))
        run_by_a_superuser(server_with_logins, site, script)
    provisioning.provision(marked(site, installer))
    assert provisioning.check(marked(site, installer)) == []
    site.run(f"ALTER VIEW shown.live OWNER TO {mallory}")
    provisioning.remove(marked(site, installer))
    assert site.value("SELECT to_regclass('shown.live') IS NOT NULL"), "it is not Concord's any more"


def test_a_view_that_was_made_after_the_script_was_printed_stops_the_script(site: Site, mallory: str) -> None:
    site.run("CREATE SCHEMA shown", "GRANT ALL ON SCHEMA shown TO PUBLIC")
    ((_, script),) = provisioning.sql(marked(site))
    by(site, mallory, "CREATE VIEW shown.live AS SELECT 1 AS id")
    with pytest.raises(psycopg.errors.DuplicateObject, match=f"belongs to {mallory}, not to Concord"):
        site.connection.execute(script.encode())
    site.connection.rollback()
    assert site.value("SELECT to_regnamespace('concord')") is None


@pytest.mark.parametrize("altered", [False, True], ids=["as it is", "to be altered"])
def test_a_publication_that_was_made_after_the_script_was_printed_stops_the_script(
    sites: Bare, mallory: str, altered: bool
) -> None:
    """Even one that the script leaves as it is: its members would be remembered as unbroken."""
    made = published(sites, mallory)
    provisioning.provision(made.installations())
    if altered:
        sites.london.run("ALTER PUBLICATION concord_operations SET TABLE public.account (id)")
    script = dict(provisioning.sql(made.installations()))["london"]
    sites.london.run(f"ALTER PUBLICATION concord_operations OWNER TO {mallory}")
    with pytest.raises(psycopg.errors.DuplicateObject, match=f"belongs to {mallory}, not to Concord"):
        sites.london.connection.execute(script.encode())
    sites.london.connection.rollback()


def published(sites: Bare, mallory: str) -> Replicated:
    """A replication from London, where she may make publications."""
    sites.run("CREATE TABLE public.account (id int PRIMARY KEY, note text)")
    sites.london.run(f'GRANT CREATE ON DATABASE "{sites.london.database}" TO {mallory}')
    table = ReplicatedTable(table=TableName(schema_name="public", name="account"))
    return Replicated(*sites.sites, (table,), f"r{os.urandom(6).hex()}", {})


def test_a_publication_of_somebody_elses_is_neither_altered_nor_handed_over(
    sites: Bare, mallory: str
) -> None:
    """Its owner could take a table from it at any time, and what users write then is lost."""
    made = published(sites, mallory)
    by(sites.london, mallory, "CREATE PUBLICATION concord_operations")
    said = f"london: the publication concord_operations belongs to {mallory} and is not Concord's"
    assert said in refused(made.installations())
    assert sites.london.value("SELECT pubowner::regrole::text FROM pg_publication") == mallory
    sites.london.run("DROP PUBLICATION concord_operations")
    provisioning.provision(made.installations())


def test_a_site_that_concord_leaves_keeps_a_publication_of_somebody_elses(site: Site, mallory: str) -> None:
    provisioning.provision(asked(site))
    by(site, mallory, "CREATE PUBLICATION concordcapture")
    provisioning.remove(asked(site))
    assert site.rows("SELECT pubname FROM pg_publication") == [("concordcapture",)]
