"""A superuser is asked once, runs nothing of others, and gives an installer that can do nothing yet all it needs."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.provisioning import Installation
from concord.jobs.snapshot import SnapshotDefinition, SnapshotKind
from concord.messages.errors import ProvisioningRefused
from concord.tables.identity import Identity
from concord.tables.replication_set import Marks, ReplicatedTable, TableName
from embedded.postgres import Server
from tests.conftest import Database
from tests.databases.postgresql.installers import (
    new_installer,
    new_role,
    refused,
    rename,
    run_by_a_superuser,
)
from tests.given.bare_sites import installation
from tests.given.fixtures import site_on
from tests.given.site import Site, every_table, make_tables
from tests.given.two_sites import Pair

#: Everything belongs to others, and the installer may see nothing of it.
TABLES = (
    "CREATE SCHEMA app AUTHORIZATION {owner}",
    "SET ROLE {owner}",
    "CREATE TYPE app.mood AS ENUM ('glad', 'sad')",
    "CREATE TABLE app.person (id bigserial PRIMARY KEY, mood app.mood, name text)",
    "CREATE TABLE app.visit (id int PRIMARY KEY, person bigint REFERENCES app.person)",
    "INSERT INTO app.person VALUES (1, 'glad', 'Ada'), (2, 'sad', 'Grace')",
    "RESET ROLE",
)


@pytest.fixture
def installer(server_with_logins: Server) -> str:
    return new_installer(server_with_logins)


@pytest.fixture
def owner_of_tables(server_with_logins: Server) -> str:
    return new_role(server_with_logins)


@pytest.fixture
def new_site(
    server_with_logins: Server, database: Callable[[], Database], owner_of_tables: str
) -> Iterator[Callable[[str], Site]]:
    made: list[Site] = []

    def new(name: str) -> Site:
        made.append(site_on(server_with_logins, name, database().name))
        make_tables(made[-1], [statement.format(owner=owner_of_tables) for statement in TABLES])
        return made[-1]

    yield new
    for site in made:
        site.connection.close()


def tables(site: Site) -> tuple[ReplicatedTable, ...]:
    return tuple(each for each in every_table(site) if each.table.schema_name == "app")


def asked(site: Site, installer: str, **changed: object) -> list[Installation]:
    wanted = installation(site, tables(site), **changed)
    return [replace(wanted, installer=site.credentials(installer))]


def admit(server: Server, site: Site, installations: list[Installation]) -> None:
    ((_, script),) = provisioning.sql(installations)
    run_by_a_superuser(server, site, script)


def test_after_one_script_of_a_superuser_a_plain_login_provisions_and_a_link_runs(
    new_site: Callable[[str], Site],
    installer: str,
    owner_of_tables: str,
    server_with_logins: Server,
    request: pytest.FixtureRequest,
) -> None:
    london, capetown = new_site("london"), new_site("capetown")
    said = refused(asked(london, installer))
    assert f"nor act for {owner_of_tables}, who owns app.person, app.person_id_seq, app.visit" in said
    for site in (london, capetown):
        admit(server_with_logins, site, asked(site, installer))
        provisioning.provision(asked(site, installer))
        assert provisioning.check(asked(site, installer)) == []
    pair = Pair(london, capetown, tables(london), lambda: request.getfixturevalue("spark"))
    declare_equal(pair.job())
    london.as_application("UPDATE app.person SET mood = 'sad' WHERE id = 1")
    capetown.as_application("INSERT INTO app.visit VALUES (7, 2)")
    pair.settle()
    assert pair.equal
    assert capetown.rows("SELECT mood::text FROM app.person WHERE id = 1") == [("sad",)]
    for site in (london, capetown):
        provisioning.provision(asked(site, installer))
        assert provisioning.check(asked(site, installer)) == []


def test_links_run_and_provisioning_may_be_repeated_after_a_database_was_renamed(
    new_site: Callable[[str], Site],
    installer: str,
    server_with_logins: Server,
    request: pytest.FixtureRequest,
) -> None:
    london, capetown = new_site("london"), new_site("capetown")
    for site in (london, capetown):
        admit(server_with_logins, site, asked(site, installer))
        provisioning.provision(asked(site, installer))
    pair = Pair(london, capetown, tables(london), lambda: request.getfixturevalue("spark"))
    declare_equal(pair.job())
    before = london.database
    rename(london, f"{before}_renamed")
    try:
        assert provisioning.check(asked(london, installer)) == []
        london.as_application("UPDATE app.person SET mood = 'sad' WHERE id = 1")
        capetown.as_application("INSERT INTO app.visit VALUES (7, 2)")
        pair.settle()
        assert pair.equal
        assert provisioning.provision(asked(london, installer)) == [], "common history is still proven"
        pair.settle()
        assert provisioning.check(asked(london, installer)) == []
    finally:
        rename(london, before)


def everything(site: Site, installer: str) -> list[Installation]:
    """Filters, shares of sequences, marks with a view, announcements, a snapshot's two ends."""
    person, visit = tables(site)[:2]
    thing = TableName(schema_name="app", name="thing")
    marks = Marks(changed_at="at", deleted="gone", view=TableName(schema_name="shown", name="things"))
    copy = SnapshotDefinition(
        name="copy",
        kind=SnapshotKind.NON_INCREMENTAL,
        source=site.name,
        target=site.name,
        relation=TableName(schema_name="app", name="source"),
        table=TableName(schema_name="shown", name="copy"),
    )
    shares = Identity(slots=2, slot={site.name: 1, "other": 2})
    wanted = (
        ReplicatedTable(table=person.table, where="name = 'Ada'").sharing(shares),
        visit,
        ReplicatedTable(table=thing, tracking=marks),
    )
    [asking] = asked(site, installer, snapshots=(copy,), announced=frozenset(["app.person"]))
    return [replace(asking, tables=wanted)]


def test_the_script_gives_what_every_feature_needs(
    new_site: Callable[[str], Site], installer: str, owner_of_tables: str, server_with_logins: Server
) -> None:
    site, another = new_site("london"), new_role(server_with_logins)
    site.run(
        f"CREATE SCHEMA shown AUTHORIZATION {new_role(server_with_logins)}",
        "CREATE TABLE app.thing (id int PRIMARY KEY, at timestamptz NOT NULL, gone boolean NOT NULL)",
        "CREATE INDEX ON app.thing (at)",
        "CREATE TABLE app.source (id int PRIMARY KEY)",
        f"ALTER TABLE app.thing OWNER TO {another}",
        f"ALTER TABLE app.source OWNER TO {another}",
        "CREATE TABLE app.outside (person bigint REFERENCES app.person)",
        f"ALTER TABLE app.outside OWNER TO {another}",
    )
    admit(server_with_logins, site, everything(site, installer))
    for _ in range(2):
        provisioning.provision(everything(site, installer))
        assert provisioning.check(everything(site, installer)) == []
    site.run("ALTER VIEW shown.things OWNER TO CURRENT_USER")  # as the script of an older Concord left it
    assert "who owns shown.things; let a superuser run" in refused(everything(site, installer))
    admit(server_with_logins, site, everything(site, installer))
    provisioning.provision(everything(site, installer))
    provisioning.remove(everything(site, installer))
    assert site.value("SELECT to_regnamespace('concord')") is None


def test_the_script_grants_nothing_on_a_destination_that_provisioning_has_yet_to_make(
    new_site: Callable[[str], Site], installer: str, server_with_logins: Server
) -> None:
    london, capetown = new_site("london"), new_site("capetown")
    copy = SnapshotDefinition(
        name="copy",
        kind=SnapshotKind.NON_INCREMENTAL,
        source="london",
        target="capetown",
        relation=TableName(schema_name="app", name="visit"),
        table=TableName(schema_name="shown", name="copy"),
    )
    capetown.run(f"CREATE SCHEMA shown AUTHORIZATION {new_role(server_with_logins)}")
    both = [*asked(london, installer, snapshots=(copy,)), *asked(capetown, installer, snapshots=(copy,))]
    for site, (_, script) in zip((london, capetown), list(provisioning.sql(both)), strict=True):
        run_by_a_superuser(server_with_logins, site, script)
    provisioning.provision(both)
    assert provisioning.check(both) == []
    assert capetown.rows("TABLE shown.copy") == []


def test_a_table_of_another_owner_that_comes_later_takes_one_more_script(
    new_site: Callable[[str], Site], installer: str, server_with_logins: Server
) -> None:
    site, another = new_site("london"), new_role(server_with_logins)
    admit(server_with_logins, site, asked(site, installer))
    provisioning.provision(asked(site, installer))
    site.run("CREATE TABLE app.pet (id int PRIMARY KEY)", f"ALTER TABLE app.pet OWNER TO {another}")
    said = refused(asked(site, installer))
    assert f"london: {installer} cannot act for {another}, who owns app.pet; let a superuser run" in said
    admit(server_with_logins, site, asked(site, installer))
    provisioning.provision(asked(site, installer))
    assert provisioning.check(asked(site, installer)) == []


def test_no_script_makes_an_installer_act_for_a_superuser(
    new_site: Callable[[str], Site], installer: str
) -> None:
    site = new_site("london")
    site.run("CREATE TABLE app.pet (id int PRIMARY KEY)")
    said = (
        f"london: app.pet belongs to the superuser {site.superuser}, and who acts for a superuser is one; let"
    )
    assert said in refused(asked(site, installer))
    with pytest.raises(ProvisioningRefused, match=re.escape(said)):
        list(provisioning.sql(asked(site, installer)))


#: By whoever acts for Concord's owner, or for the schema public: the code of `app.steal()`, which ends a SET ROLE.
PLANTED = {
    "a trigger of the statement": (
        "CREATE TRIGGER evil BEFORE INSERT OR UPDATE ON concord.site EXECUTE FUNCTION app.trigger()",
        "CREATE TRIGGER evil BEFORE INSERT OR UPDATE ON concord.replicated_table EXECUTE FUNCTION app.trigger()",
    ),
    "a trigger that waits for the commit": (
        "CREATE CONSTRAINT TRIGGER evil AFTER INSERT ON concord.replicated_table DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION app.trigger()",
    ),
    "a rule": (
        "CREATE RULE evil AS ON UPDATE TO concord.link_state DO ALSO SELECT app.steal() FROM concord.site",
    ),
    "a condition": ("ALTER TABLE concord.replicated_table ADD CHECK (app.steal() = 1)",),
    "an index": ("CREATE INDEX ON concord.replicated_table ((app.steal()))",),
}

STEAL = (
    "CREATE TABLE public.loot (who text)",
    "GRANT INSERT ON public.loot TO PUBLIC",
    "CREATE FUNCTION app.act() RETURNS void LANGUAGE plpgsql AS $$BEGIN BEGIN EXECUTE 'RESET ROLE';"
    " EXCEPTION WHEN OTHERS THEN NULL; END; INSERT INTO public.loot VALUES (current_user); END$$",
    "CREATE FUNCTION app.steal() RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
    " $$BEGIN PERFORM app.act(); RETURN 1; END$$",
    "CREATE FUNCTION app.trigger() RETURNS trigger LANGUAGE plpgsql AS"
    " $$BEGIN PERFORM app.act(); RETURN coalesce(NEW, OLD); END$$",
    "GRANT USAGE ON SCHEMA app TO PUBLIC",
)


def thieves(site: Site) -> set[str]:
    """As whom what was planted has run."""
    return {who for (who,) in site.rows("SELECT who FROM public.loot")}


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_planted_on_concords_tables_never_runs_as_the_superuser_who_runs_the_script(
    new_site: Callable[[str], Site], installer: str, server_with_logins: Server, plant: str
) -> None:
    site, another = new_site("london"), new_role(server_with_logins)
    admit(server_with_logins, site, asked(site, installer))
    provisioning.provision(asked(site, installer))
    site.run(*STEAL)
    with site.log_in(installer) as connection:
        for statement in PLANTED[plant]:
            connection.execute(statement.encode())
    site.run(
        "TRUNCATE public.loot",
        "CREATE TABLE app.pet (id int PRIMARY KEY)",
        f"ALTER TABLE app.pet OWNER TO {another}",
    )
    admit(server_with_logins, site, asked(site, installer))
    assert thieves(site) <= {installer}
    provisioning.provision(asked(site, installer))
    assert thieves(site) == {installer}, "the plant did nothing"


def test_a_function_in_the_schema_public_does_not_stand_in_for_postgresqls_in_a_script(
    new_site: Callable[[str], Site], installer: str, server_with_logins: Server
) -> None:
    site = new_site("london")
    site.run(
        *STEAL,
        "CREATE FUNCTION public.pg_has_role(text, text, text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$BEGIN PERFORM app.act(); RETURN true; END$$",
        "SELECT pg_has_role('postgres', 'postgres', 'USAGE')",
    )
    assert site.rows("TABLE public.loot") == [(site.superuser,)], "the plant does nothing"
    site.run("TRUNCATE public.loot")
    admit(server_with_logins, site, asked(site, installer))
    assert site.rows("TABLE public.loot") == []
    site.run("DROP FUNCTION public.pg_has_role(text, text, text)")


def test_the_installers_script_is_not_run_by_a_superuser(
    new_site: Callable[[str], Site], installer: str, server_with_logins: Server
) -> None:
    site = new_site("london")
    admit(server_with_logins, site, asked(site, installer))
    ((_, script),) = provisioning.sql(asked(site, installer))
    with pytest.raises(psycopg.errors.RaiseException, match=f"let {installer} run this"):
        site.connection.execute(script.encode())
    site.connection.rollback()
    assert site.value("SELECT to_regclass('concord.site')") is None
    with site.log_in(installer) as connection:
        connection.execute(script.encode())
    assert provisioning.check(asked(site, installer)) == []
