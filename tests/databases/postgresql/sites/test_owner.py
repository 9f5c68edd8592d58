"""Concord's objects at a site belong to a role that can do nothing else; a superuser is asked once at most."""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.sites import owner
from concord.databases.provisioning import Installation
from concord.messages.errors import ProvisioningRefused
from concord.rules.policy import Policy
from embedded.postgres import Server
from embedded.programs import versions
from tests.conftest import PROJECT, Database
from tests.databases.postgresql.installers import new_installer, refused, rename, run_by_a_superuser
from tests.given.bare_sites import installation
from tests.given.fixtures import site_on
from tests.given.site import APPLICATION, APPLIER, Site, create_logins, every_table

DOCUMENT = PROJECT / "docs" / "operations.md"

TABLE = (
    "CREATE SCHEMA app AUTHORIZATION {installer}",
    "SET ROLE {installer}",
    "CREATE TYPE app.mood AS ENUM ('glad', 'sad')",
    "CREATE TABLE app.person (id int PRIMARY KEY, mood app.mood)",
    "INSERT INTO app.person VALUES (1, 'glad'), (2, 'sad')",
    "RESET ROLE",
)

#: Whose each of Concord's objects is.
OWNERS = """
SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname ~ '^concord' UNION
SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE relnamespace = 'concord'::regnamespace UNION
SELECT pg_get_userbyid(proowner)::text FROM pg_proc WHERE pronamespace = 'concord'::regnamespace"""


def new_site(server: Server, database: str, installer: str) -> Site:
    london = site_on(server, "london", database)
    london.run(*(statement.format(installer=installer) for statement in TABLE))
    return london


@pytest.fixture
def installer(server_with_logins: Server) -> str:
    return new_installer(server_with_logins)


@pytest.fixture
def site(server_with_logins: Server, database: Callable[[], Database], installer: str) -> Iterator[Site]:
    london = new_site(server_with_logins, database().name, installer)
    yield london
    london.connection.close()


def asked(site: Site, installer: str, **changed: Any) -> list[Installation]:
    return [replace(installation(site, every_table(site), **changed), installer=site.credentials(installer))]


def owners(site: Site) -> set[str]:
    return {name for (name,) in site.rows(OWNERS)}


def roles(site: Site) -> list[str]:
    return [
        name
        for (name,) in site.rows(
            f"SELECT rolname FROM pg_roles WHERE rolname = '{owner.role(site.database)}'"
        )
    ]


def captures(site: Site, key: int) -> bool:
    """Whether what a user does who has no right on Concord's own is stamped."""
    site.as_application(f"UPDATE app.person SET mood = 'glad' WHERE id = {key}")
    site.as_application(
        f"DELETE FROM app.person WHERE id = {key}", f"INSERT INTO app.person VALUES ({key}, 'sad')"
    )
    return site.rows(f'SELECT deleted FROM concord."app.person" WHERE id = {key}') == [(False,)]


def admit(site: Site) -> None:
    site.run(
        f"GRANT USAGE ON SCHEMA app TO {APPLICATION}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA app TO {APPLICATION}",
    )


def test_all_of_concords_objects_belong_to_a_role_that_can_do_nothing_else(site: Site) -> None:
    provisioning.provision(asked(site, site.superuser, announced=frozenset(["app.person"])))

    name = owner.role(site.database)
    assert owners(site) == {name}
    can = "rolcanlogin OR rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls OR rolinherit"
    assert site.value(f"SELECT {can} FROM pg_roles WHERE rolname = '{name}'") is False
    assert site.rows(f"SELECT FROM pg_auth_members WHERE '{name}'::regrole IN (roleid, member)") == []
    rights = (
        "SELECT oid::regclass::text, privilege_type FROM pg_class, aclexplode(relacl)"
        f" WHERE grantee = '{name}'::regrole AND relnamespace::regnamespace::text !~ '^concord' UNION ALL"
        " SELECT nspname, privilege_type FROM pg_namespace, aclexplode(nspacl)"
        f" WHERE grantee = '{name}'::regrole AND nspname !~ '^concord'"
    )
    assert sorted(site.rows(rights)) == [("app", "USAGE"), ("app.person", "SELECT")]
    admit(site)
    assert captures(site, 1)
    assert provisioning.check(asked(site, site.superuser)) == []


def test_what_a_tables_owner_smuggles_into_capture_runs_with_no_rights_but_the_users(
    site: Site, installer: str
) -> None:
    """A constant that a CHECK calls for is computed when a query is planned, capture's own question among them."""
    provisioning.provision(asked(site, site.superuser))
    site.run(
        "CREATE TABLE public.loot (who name DEFAULT current_user)",
        "GRANT INSERT ON public.loot TO PUBLIC",
        f"SET ROLE {installer}",
        "CREATE FUNCTION app.steal() RETURNS void LANGUAGE plpgsql AS"
        " $$BEGIN INSERT INTO public.loot DEFAULT VALUES; END$$",
        "CREATE FUNCTION app.evil(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
        " $$BEGIN PERFORM app.steal(); RETURN 1; END$$",
        "ALTER TABLE app.person ADD CHECK (app.evil(1) = 1)",
        "RESET ROLE",
        "TRUNCATE public.loot",
    )
    admit(site)
    site.as_application(
        "SET constraint_exclusion = on",
        "DELETE FROM app.person WHERE id = 1",
        "INSERT INTO app.person VALUES (1, 'sad')",
    )
    assert {who for (who,) in site.rows("SELECT who FROM public.loot")} == {APPLICATION}


def test_each_database_of_a_cluster_has_its_own_role_whatever_it_is_called() -> None:
    names = ["a", "a" * 63, "a" * 62 + "b", "é" * 31, 'odd "name"']
    found = {owner.role(name) for name in names}
    assert len(found) == len(names)
    assert all(len(name.encode()) <= 63 for name in found)


def test_an_installer_that_may_not_make_roles_asks_a_superuser_once_and_is_alone_from_then_on(
    site: Site, installer: str, server_with_logins: Server
) -> None:
    said = refused(asked(site, installer))
    assert f"london: {installer} cannot make the role {owner.role(site.database)}" in said
    assert "let a superuser run the output of `provision --print-sql` once" in said
    assert site.value("SELECT to_regnamespace('concord')") is None

    ((_, script),) = provisioning.sql(asked(site, installer))
    run_by_a_superuser(server_with_logins, site, script)
    provisioning.provision(asked(site, installer))
    assert provisioning.check(asked(site, installer)) == []
    assert owners(site) == {owner.role(site.database)}

    site.run(f"SET ROLE {installer}", "CREATE TABLE app.pet (id int PRIMARY KEY)", "RESET ROLE")
    provisioning.provision(asked(site, installer))
    assert provisioning.check(asked(site, installer)) == []
    merged = [
        table.model_copy(update={"policy": Policy(resolvers=("merge_columns",))})
        for table in every_table(site)
    ]
    provisioning.provision([replace(each, tables=tuple(merged)) for each in asked(site, installer)])
    admit(site)
    assert captures(site, 1)
    assert owners(site) == {owner.role(site.database)}

    provisioning.remove(asked(site, installer))
    assert site.value("SELECT to_regnamespace('concord')") is None
    assert roles(site) == [owner.role(site.database)], "the installer could not make it again"


def by_hand(site: Site, installer: str) -> list[str]:
    """The statements that the document has a superuser run, for this site."""
    (block,) = re.findall(r"```sql\n(CREATE ROLE concord_owner_of_.*?)```", DOCUMENT.read_text(), re.DOTALL)
    names = {
        "concord_owner_of_london": owner.role(site.database),
        "DATABASE london": f'DATABASE "{site.database}"',
        "concord_installer": installer,
        "concord_applier": APPLIER,
    }
    for name, here in names.items():
        assert name in block
        block = block.replace(name, here)
    return [statement for statement in block.split(";") if statement.strip()]


def test_an_installer_for_whom_a_superuser_made_the_role_by_hand_needs_nobody(
    site: Site, installer: str
) -> None:
    site.run(*by_hand(site, installer))
    provisioning.provision(asked(site, installer))
    assert owners(site) == {owner.role(site.database)}
    assert provisioning.check(asked(site, installer)) == []
    provisioning.remove(asked(site, installer))
    provisioning.provision(asked(site, installer))
    assert provisioning.check(asked(site, installer)) == []


def test_an_installer_that_may_make_roles_needs_nobody(site: Site, installer: str) -> None:
    site.run(
        f"ALTER ROLE {installer} CREATEROLE",
        f'GRANT CREATE ON DATABASE "{site.database}" TO {installer}',
        f"GRANT SET ON PARAMETER session_replication_role, deadlock_timeout TO {APPLIER}",
    )
    provisioning.provision(asked(site, installer))
    assert owners(site) == {owner.role(site.database)}
    assert provisioning.check(asked(site, installer)) == []
    provisioning.provision(asked(site, installer))
    provisioning.remove(asked(site, installer))
    assert roles(site) == []


@pytest.fixture(scope="module", params=[15, 18])
def another_release(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    version = request.param
    if version not in versions():
        pytest.skip(f"PostgreSQL {version} is not installed")
    server = Server.create(tmp_path_factory.mktemp("another") / "server", version=version)
    with psycopg.connect(server.uri("postgres"), autocommit=True) as superuser:
        create_logins(superuser)
    yield server
    server.remove()


@pytest.fixture
def elsewhere(another_release: Server) -> Iterator[Callable[[], tuple[Site, str]]]:
    """Call it for a site of another release, and its installer."""
    made: list[Site] = []

    def new() -> tuple[Site, str]:
        name, installer = f"site_{len(made)}", new_installer(another_release)
        another_release.create_database(name)
        made.append(new_site(another_release, name, installer))
        return made[-1], installer

    yield new
    for each in made:
        each.connection.close()


def test_installers_get_on_alike_on_other_releases(
    another_release: Server, elsewhere: Callable[[], tuple[Site, str]]
) -> None:
    """Until PostgreSQL 15 whoever may make roles may admit to any, and a membership has no options."""
    test_an_installer_for_whom_a_superuser_made_the_role_by_hand_needs_nobody(*elsewhere())
    test_an_installer_that_may_make_roles_needs_nobody(*elsewhere())
    test_an_installer_that_may_not_make_roles_asks_a_superuser_once_and_is_alone_from_then_on(
        *elsewhere(), another_release
    )
    test_a_role_that_another_login_laid_out_is_refused_until_a_superuser_takes_it_back(
        *elsewhere(), another_release
    )


def as_before(site: Site, user: str) -> None:
    """A site as an older Concord left it: everything belongs to whoever provisioned it."""
    provisioning.provision(asked(site, site.superuser))
    site.run(
        f'REASSIGN OWNED BY "{owner.role(site.database)}" TO {user}',
        f'DROP OWNED BY "{owner.role(site.database)}"',
        f'DROP ROLE "{owner.role(site.database)}"',
        "UPDATE concord.site SET format = 7",
    )


def test_a_site_of_an_older_concord_is_handed_over_in_place(site: Site) -> None:
    as_before(site, site.superuser)
    admit(site)
    site.as_application("DELETE FROM app.person WHERE id = 1")
    before = site.rows('TABLE concord."app.person"')
    triggers = site.value("SELECT triggers FROM concord.replicated_table")

    provisioning.provision(asked(site, site.superuser))

    assert owners(site) == {owner.role(site.database)}
    assert site.rows('TABLE concord."app.person"') == before
    assert site.value("SELECT triggers FROM concord.replicated_table") == triggers
    assert provisioning.check(asked(site, site.superuser)) == []
    assert captures(site, 2)


def test_an_installer_whose_objects_a_superuser_made_before_asks_once_too(
    site: Site, installer: str, server_with_logins: Server
) -> None:
    """The script of an older Concord left everything to whoever ran it."""
    as_before(site, site.superuser)
    said = refused(asked(site, installer))
    assert f"nor hand over what {site.superuser} owns of Concord's; let a superuser run the output of" in said
    ((_, script),) = provisioning.sql(asked(site, installer))
    run_by_a_superuser(server_with_logins, site, script)
    provisioning.provision(asked(site, installer))
    assert owners(site) == {owner.role(site.database)}


UNFIT = {
    'ALTER ROLE "{role}" LOGIN': "may log in",
    'ALTER ROLE "{role}" CREATEDB': "has an attribute that gives it more rights",
    'GRANT pg_read_all_data TO "{role}"': "is a member of another role",
    'CREATE TABLE public.its (id int); ALTER TABLE public.its OWNER TO "{role}"': "owns table public.its",
    'CREATE TYPE public.its AS ENUM (); ALTER TYPE public.its OWNER TO "{role}"': "owns type public.its",
}


@pytest.mark.parametrize("alteration", UNFIT)
def test_a_role_of_that_name_that_can_do_more_is_refused(site: Site, alteration: str) -> None:
    """Else whoever may make roles could lay one out for Concord."""
    name = owner.role(site.database)
    site.run(f'CREATE ROLE "{name}" NOLOGIN', alteration.format(role=name))
    said = f"london: the role {name}, which is to own what Concord keeps, {UNFIT[alteration]}; "
    assert said in refused(asked(site, site.superuser))
    assert site.value("SELECT to_regnamespace('concord')") is None


def test_what_of_concords_belongs_to_others_is_told(site: Site) -> None:
    name = owner.role(site.database)
    provisioning.provision(asked(site, site.superuser))
    site.run(f'ALTER FUNCTION concord."capture app.person" OWNER TO {site.superuser}')
    assert provisioning.check(asked(site, site.superuser)) == [
        f"london: {site.superuser} owns something of Concord's, which {name} should; run `provision`",
    ]
    provisioning.provision(asked(site, site.superuser))
    assert provisioning.check(asked(site, site.superuser)) == []


def revoked(said: str) -> list[str]:
    """The statements that the line has a superuser run."""
    return said.partition("let a superuser run ")[2].splitlines()[0].split("; ")


@pytest.mark.parametrize("option", ["", " WITH ADMIN OPTION"])
def test_a_role_as_which_others_may_act_is_refused_whenever_they_came_by_it(site: Site, option: str) -> None:
    """Before the role is used, and afterwards; the line's own statements end it, whoever granted."""
    name, stranger = owner.role(site.database), f"stranger_{os.urandom(4).hex()}"
    site.run(
        f'CREATE ROLE "{name}" NOLOGIN', f"CREATE ROLE {stranger}", f'GRANT "{name}" TO {stranger}{option}'
    )
    said = refused(asked(site, site.superuser))
    assert (
        f"london: {stranger} may act as {name}, or admit others to it, and it owns what Concord keeps" in said
    )
    assert site.value("SELECT to_regnamespace('concord')") is None
    with pytest.raises(ProvisioningRefused, match=f"{stranger} may act as"):
        list(provisioning.sql(asked(site, site.superuser)))
    site.run(*revoked(said))
    provisioning.provision(asked(site, site.superuser))
    site.run(f'GRANT "{name}" TO {stranger}{option}')
    (line,) = provisioning.check(asked(site, site.superuser))
    assert revoked(line) == revoked(said)
    site.run(*revoked(line), f"DROP ROLE {stranger}")
    assert provisioning.check(asked(site, site.superuser)) == []


def laid_out(server: Server, site: Site) -> list[str]:
    """A login that may make roles has made the role, and let another one in; both of them, or who is a member of
    it."""
    maker, friend = new_installer(server), new_installer(server)
    name, can_self = (
        owner.role(site.database),
        site.value("SELECT current_setting('server_version_num')::int") >= 160000,
    )
    site.run(f"ALTER ROLE {maker} CREATEROLE", f"GRANT {maker} TO CURRENT_USER")
    with site.log_in(maker) as connection:
        connection.execute(f'CREATE ROLE "{name}" NOLOGIN'.encode())
        connection.execute(f'GRANT "{name}" TO {friend}'.encode())
        if can_self:
            connection.execute(f'GRANT "{name}" TO {maker} WITH INHERIT TRUE, SET TRUE'.encode())
    return sorted([maker, friend]) if can_self else [friend]


def test_a_role_that_another_login_laid_out_is_refused_until_a_superuser_takes_it_back(
    site: Site, installer: str, server_with_logins: Server
) -> None:
    """From PostgreSQL 16 on, whoever makes a role keeps ADMIN of it, and gives himself and others the rest."""
    members = laid_out(server_with_logins, site)
    for who in (site.superuser, installer):
        said = refused(asked(site, who))
        assert f"london: {', '.join(members)} may act as" in said
    site.run(*revoked(said))
    provisioning.provision(asked(site, site.superuser))
    assert provisioning.check(asked(site, site.superuser)) == []


def test_a_script_that_was_printed_before_another_login_laid_out_the_role_does_nothing(
    site: Site, installer: str, server_with_logins: Server
) -> None:
    ((_, script),) = provisioning.sql(asked(site, installer))
    laid_out(server_with_logins, site)
    with pytest.raises(psycopg.errors.RaiseException, match="others may act as the role"):
        site.connection.execute(script.encode())
    site.connection.rollback()
    assert site.value("SELECT to_regnamespace('concord')") is None


def test_a_renamed_database_keeps_its_role(site: Site, installer: str, server_with_logins: Server) -> None:
    before, name = site.database, owner.role(site.database)
    ((_, script),) = provisioning.sql(asked(site, installer))
    run_by_a_superuser(server_with_logins, site, script)
    provisioning.provision(asked(site, installer))
    admit(site)
    rename(site, f"{before} Renamed")
    try:
        assert provisioning.check(asked(site, installer)) == []
        provisioning.provision(asked(site, installer))
        assert (owners(site), roles(site)) == ({name}, [])
        assert captures(site, 1)
        provisioning.remove(asked(site, installer))
        assert site.value("SELECT to_regnamespace('concord')") is None
        site.run(f'DROP ROLE "{name}"')
    finally:
        rename(site, before)


def test_a_new_database_under_the_old_name_of_a_renamed_one_does_not_get_its_role(
    site: Site, server_with_logins: Server
) -> None:
    before, name = site.database, owner.role(site.database)
    provisioning.provision(asked(site, site.superuser))
    rename(site, f"{before}_renamed")
    server_with_logins.create_database(before)
    other = new_site(server_with_logins, before, site.superuser)
    try:
        said = (
            f"london: the role {name}, which is to own what Concord keeps, owns something in another database"
        )
        assert said in refused(asked(other, other.superuser))
        site.run(f'ALTER ROLE "{name}" RENAME TO "{owner.role(site.database)}"')
        provisioning.provision(asked(other, other.superuser))
        assert (owners(other), owners(site)) == ({name}, {owner.role(site.database)})
        assert provisioning.check(asked(site, site.superuser)) == []
    finally:
        other.connection.close()
        server_with_logins.drop_database(before)
        rename(site, before)


def test_a_copied_database_gets_a_role_of_its_own(site: Site, server_with_logins: Server) -> None:
    provisioning.provision(asked(site, site.superuser))
    copy = f"{site.database} Copy"
    site.connection.close()
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{site.database}"'.encode())
    site.connection = site.log_in(site.superuser)
    other = site_on(server_with_logins, "london", copy)
    try:
        provisioning.provision(asked(other, other.superuser))
        assert (owners(other), owners(site)) == ({owner.role(copy)}, {owner.role(site.database)})
        assert provisioning.check(asked(site, site.superuser)) == []
    finally:
        other.connection.close()
        server_with_logins.drop_database(copy)


def test_a_right_that_capture_lacks_is_told(site: Site) -> None:
    name = owner.role(site.database)
    provisioning.provision(asked(site, site.superuser))
    site.run(f'REVOKE SELECT ON app.person FROM "{name}"')
    (line,) = provisioning.check(asked(site, site.superuser))
    assert line.endswith(
        f'lacks SELECT on table app.person; GRANT SELECT ON TABLE "app"."person" TO "{name}"'
    )


def test_removing_takes_the_role_with_its_rights_but_not_one_that_owns_something_else(site: Site) -> None:
    provisioning.provision(asked(site, site.superuser))
    provisioning.remove(asked(site, site.superuser))
    assert roles(site) == []
    provisioning.provision(asked(site, site.superuser))
    site.run(
        "CREATE TABLE public.its (id int)", f'ALTER TABLE public.its OWNER TO "{owner.role(site.database)}"'
    )
    provisioning.remove(asked(site, site.superuser))
    assert site.rows("TABLE public.its") == []
    site.run(
        "DROP TABLE public.its",
        f'DROP OWNED BY "{owner.role(site.database)}"',
        f'DROP ROLE "{owner.role(site.database)}"',
    )
