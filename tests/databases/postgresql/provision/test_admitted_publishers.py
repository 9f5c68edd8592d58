"""An installer that is no superuser provisions replications once a superuser has run one script (S0-43)."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from concord.databases import provisioning
from concord.databases.provisioning import Installation
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from embedded.postgres import Server
from tests.databases.postgresql.installers import new_installer, new_role, refused, run_by_a_superuser
from tests.given.bare_sites import Bare
from tests.given.replicated_sites import Replicated

TABLES = (ReplicatedTable(table=parse_table_name("app.account")),)


@pytest.fixture
def installer(server_with_logins: Server) -> str:
    return new_installer(server_with_logins)


@pytest.fixture
def owner(server_with_logins: Server) -> str:
    return new_role(server_with_logins)


@pytest.fixture
def made(sites: Bare, owner: str) -> Iterator[Replicated]:
    """A table of a role that cannot log in, at either site; Concord is at neither."""
    sites.run(
        f"CREATE SCHEMA app AUTHORIZATION {owner}",
        "CREATE TABLE app.account (id int PRIMARY KEY, note text)",
        f"ALTER TABLE app.account OWNER TO {owner}",
    )
    yield Replicated(*sites.sites, TABLES, f"r{os.urandom(6).hex()}", {})
    sites.london.drop_slots()


def asked(made: Replicated, installer: str) -> list[Installation]:
    wanted = zip(made.installations(), made.sites, strict=True)
    return [replace(each, installer=site.credentials(installer)) for each, site in wanted]


def admit(server: Server, made: Replicated, installer: str, *only: str) -> None:
    """A superuser runs the scripts, or those of some sites."""
    scripts = dict(provisioning.sql(asked(made, installer)))
    for site in made.sites:
        if not only or site.name in only:
            run_by_a_superuser(server, site, scripts[site.name])


def provisioned(made: Replicated) -> list[bool]:
    """Whether Concord is at London, and at Cape Town."""
    return [site.value("SELECT to_regclass('concord.site') IS NOT NULL") for site in made.sites]


def replicates(made: Replicated) -> bool:
    made.initialize()
    made.london.run("INSERT INTO app.account VALUES (1, 'a')")
    return made.run().entries == 1 and made.capetown.rows("TABLE app.account") == [(1, "a")]


@pytest.mark.parametrize("capture", ["log", "triggers"])
def test_after_one_script_a_plain_login_provisions_and_a_replication_runs(
    made: Replicated, installer: str, owner: str, server_with_logins: Server, capture: str
) -> None:
    made.settings = {"capture": capture}
    said = refused(asked(made, installer))
    assert f"london: {installer} cannot make the role" in said
    assert f"nor act for {owner}, who owns app.account" in said
    assert (f"nor create a publication in the database {made.london.database}" in said) == (capture == "log")
    assert provisioned(made) == [False, False]
    admit(server_with_logins, made, installer)
    for _ in range(2):
        provisioning.provision(asked(made, installer))
        assert provisioning.check(asked(made, installer)) == []
    assert replicates(made)


def test_who_may_not_create_in_the_database_is_refused_before_anything_is_written_anywhere(
    made: Replicated, installer: str, owner: str, server_with_logins: Server
) -> None:
    made.settings = {"capture": "triggers"}
    admit(server_with_logins, made, installer)
    made.settings = {}
    assert refused(asked(made, installer)) == (
        f"nothing was written, because:\n  - london: {installer} cannot create a publication in the"
        f" database {made.london.database}; let a superuser run the output of `provision --print-sql` once, and"
        f" {installer} can provision from then on"
    )
    assert provisioned(made) == [False, False]
    admit(server_with_logins, made, installer, "london")
    provisioning.provision(asked(made, installer))
    assert provisioning.check(asked(made, installer)) == []
    assert replicates(made)


def test_a_subscribers_tables_may_belong_to_others_where_their_rights_are_given(
    made: Replicated, installer: str, owner: str, server_with_logins: Server
) -> None:
    admit(server_with_logins, made, installer)
    assert made.london.value(f"SELECT pg_has_role('{installer}', '{owner}', 'USAGE')")
    provisioning.provision(asked(made, installer))
    made.capetown.run("CREATE TABLE app.more (id int PRIMARY KEY)")
    made.london.run("CREATE TABLE app.more (id int PRIMARY KEY)", f"ALTER TABLE app.more OWNER TO {owner}")
    made.tables = (*TABLES, ReplicatedTable(table=parse_table_name("app.more")))
    said = refused(asked(made, installer))
    assert "give link_applier SELECT, INSERT, UPDATE, DELETE on table app.more" in said
    assert "london" not in said
    admit(server_with_logins, made, installer, "capetown")
    for _ in range(2):
        provisioning.provision(asked(made, installer))
        assert provisioning.check(asked(made, installer)) == []
    assert replicates(made)


def test_a_publication_that_a_superuser_made_is_handed_over_before_it_is_changed(
    made: Replicated, installer: str, server_with_logins: Server
) -> None:
    made.provision()
    admit(server_with_logins, made, installer)
    provisioning.provision(asked(made, installer))
    made.london.run("ALTER PUBLICATION concord_operations SET TABLE app.account (id)")
    lacked, line = provisioning.check(asked(made, installer))
    assert "app.account has" in line
    assert "in the publication concord_operations" in line
    said = refused(asked(made, installer))
    superuser = made.london.superuser
    assert f"change the publication concord_operations, which {superuser} owns" in lacked
    assert lacked in said
    admit(server_with_logins, made, installer, "london")
    provisioning.provision(asked(made, installer))
    assert provisioning.check(asked(made, installer)) == []


def test_a_published_table_of_a_superuser_is_refused(made: Replicated, installer: str) -> None:
    made.london.run("ALTER TABLE app.account OWNER TO CURRENT_USER")
    said = refused(asked(made, installer))
    assert f"london: app.account belongs to the superuser {made.london.superuser}, and who acts for" in said
