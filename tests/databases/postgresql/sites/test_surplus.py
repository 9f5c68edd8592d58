"""Rights on Concord's own objects that no link needs: the check names each, and `provision` takes it back."""

from collections.abc import Iterator

import psycopg
import pytest

from concord.databases import provisioning
from embedded.postgres import Server
from tests.databases.postgresql.granted_rights import GRANTED, RIGHTS, TABLES
from tests.given.bare_sites import Bare
from tests.given.fixtures import MakePair
from tests.given.site import APPLIER, READER, Site

#: May pass a right on, and is a group that logins may be in.
OTHERS = "others_of_the_house"

SURPLUS = {
    f"GRANT UPDATE ON concord.site TO {APPLIER}": f"the login {APPLIER} has UPDATE on table concord.site",
    f"GRANT UPDATE (identity), DELETE ON concord.site TO {APPLIER}": (
        f"the login {APPLIER} has DELETE, UPDATE (identity) on table concord.site"
    ),
    f"GRANT DELETE, TRUNCATE ON concord.conflict TO {APPLIER}": (
        f"the login {APPLIER} has DELETE, TRUNCATE on table concord.conflict"
    ),
    f'GRANT INSERT ON concord."ops.parent" TO {READER}': (
        f'the login {READER} has INSERT on table concord."ops.parent"'
    ),
    f"GRANT CREATE ON SCHEMA concord TO {APPLIER}": f"the login {APPLIER} has CREATE on schema concord",
    f"GRANT EXECUTE ON FUNCTION concord.keyed_hash TO {READER}": (
        f"the login {READER} has EXECUTE on function concord.keyed_hash(text)"
    ),
    f"GRANT SELECT ON concord.secret TO {READER}": f"the login {READER} has SELECT on table concord.secret",
    "GRANT SELECT ON concord.conflict TO PUBLIC": "everybody has SELECT on table concord.conflict",
    "GRANT USAGE ON SCHEMA concord_staging TO PUBLIC": "everybody has USAGE on schema concord_staging",
    f"GRANT SELECT ON concord.site TO {APPLIER} WITH GRANT OPTION": (
        f"the login {APPLIER} may grant SELECT on table concord.site to others"
    ),
    f"GRANT UPDATE ON concord.site TO {OTHERS} WITH GRANT OPTION; SET ROLE {OTHERS};"
    f" GRANT UPDATE ON concord.site TO {APPLIER}; RESET ROLE": (
        f"the login {APPLIER} has UPDATE on table concord.site"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _others(server_with_logins: Server) -> None:
    with psycopg.connect(server_with_logins.uri("postgres"), autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {OTHERS} NOLOGIN".encode())


@pytest.fixture
def provisioned(pair: MakePair) -> Iterator[Bare]:
    sites = Bare(*pair(*TABLES).sites)
    sites.run(f"GRANT USAGE ON SCHEMA ops, concord TO {OTHERS}")
    yield sites
    sites.london.run(f"REVOKE {OTHERS} FROM {APPLIER}")


def rights(site: Site) -> dict[tuple[str, str], str]:
    return {(role, what): held for role, what, held in site.rows(RIGHTS)}


def passed_on(site: Site) -> list[str]:
    """Rights that a login may grant in its turn."""
    every = "SELECT relacl AS acl FROM pg_class UNION ALL SELECT attacl FROM pg_attribute"
    grantable = f"SELECT grantee::regrole::text FROM ({every}) e, aclexplode(acl) a WHERE a.is_grantable"
    return [
        role
        for (role,) in site.rows(f"{grantable} AND a.grantee IN ('{READER}'::regrole, '{APPLIER}'::regrole)")
    ]


@pytest.mark.parametrize("statement", SURPLUS)
def test_a_right_too_many_is_named_by_the_check_and_taken_back_by_provisioning(
    provisioned: Bare, statement: str
) -> None:
    london = provisioned.london
    assert provisioning.check(provisioned.installations()) == []
    london.run(*statement.split("; "))

    (line,) = provisioning.check(provisioned.installations())
    assert line.startswith(f"london: {SURPLUS[statement]}")
    assert line.endswith("; run `provision`, which takes it back")

    assert provisioning.provision(provisioned.installations()) == []
    assert provisioning.check(provisioned.installations()) == []
    assert rights(london) == GRANTED
    assert passed_on(london) == []
    assert not london.rows(
        "SELECT 1 FROM pg_class, aclexplode(relacl) WHERE relname = 'conflict' AND grantee = 0"
    )


def test_what_an_older_concord_granted_goes_with_the_upgrade(provisioned: Bare) -> None:
    provisioned.run(
        "UPDATE concord.site SET format = 7",
        f"GRANT UPDATE ON concord.site TO {APPLIER}",
        f"GRANT DELETE ON concord.conflict, concord.overturn TO {APPLIER}",
        f"GRANT SELECT ON concord.secret TO {READER}, {APPLIER}",
    )
    provisioning.provision(provisioned.installations())
    assert [rights(site) for site in provisioned.sites] == [GRANTED, GRANTED]


def test_a_right_that_a_login_has_by_a_group_is_named_with_what_takes_it_back(provisioned: Bare) -> None:
    london = provisioned.london
    london.run(f"GRANT DELETE ON concord.conflict TO {OTHERS}", f"GRANT {OTHERS} TO {APPLIER}")
    said = [
        f"london: the login {APPLIER} has DELETE on table concord.conflict by the role {OTHERS}, and no link needs it;"
        f' REVOKE {OTHERS} FROM "{APPLIER}"'
    ]
    assert provisioning.check(provisioned.installations()) == said
    provisioning.provision(provisioned.installations())
    assert provisioning.check(provisioned.installations()) == said
    london.run(f"REVOKE {OTHERS} FROM {APPLIER}")
    assert provisioning.check(provisioned.installations()) == []


def test_the_shadow_table_of_a_table_that_is_carried_no_more_is_left_alone(provisioned: Bare) -> None:
    before = [rights(site) for site in provisioned.sites]
    provisioned.run("GRANT SELECT ON concord.site TO " + OTHERS)
    (installation, *_) = provisioned.installations()
    parent = [table for table in installation.tables if table.name == "ops.parent"]
    assert provisioning.check(provisioned.installations(parent)) == []
    provisioning.provision(provisioned.installations(parent))
    assert [rights(site) for site in provisioned.sites] == before
    held = provisioned.london.rows(
        f"SELECT 1 FROM pg_class, aclexplode(relacl) WHERE relname = 'site' AND grantee = '{OTHERS}'::regrole"
    )
    assert held, "what third roles hold is the house's own"
