"""Provisioning may be repeated, printed, checked and taken back; what changed since is noticed."""

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pendulum
import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.ledger.records import purge_conflicts
from concord.databases.postgresql.provision import control
from concord.databases.postgresql.sites import owner
from concord.databases.provisioning import Installation
from concord.jobs.site import Credentials
from concord.messages.errors import (
    NotInitialized,
    NotProvisioned,
    ProvisioningRefused,
    SiteUnavailable,
    StructureChanged,
)
from embedded.postgres import Server
from tests.given.bare_sites import Bare, installation
from tests.given.fixtures import MakePair, site_on
from tests.given.site import APPLIER, Site
from tests.given.two_sites import Pair

TABLES = (
    "CREATE SCHEMA ops",
    "CREATE TABLE parent (id int PRIMARY KEY, name text)",
    'CREATE TABLE ops."Odd ""Child" (a uuid, "b c" int, parent int REFERENCES parent, PRIMARY KEY (a, "b c"))',
    "INSERT INTO parent VALUES (1, 'one')",
)

#: Everything that provisioning could have changed, without the physical columns of the catalogue.
CATALOGUE = {
    "namespaces": "SELECT nspname, nspacl::text FROM pg_namespace WHERE nspname !~ '^pg_(toast|temp)'",
    "relations": "SELECT oid::regclass::text, relkind, relacl::text, reloptions FROM pg_class"
    " WHERE relnamespace::regnamespace::text !~ '^(pg_|information)'",
    "columns": "SELECT attrelid::regclass::text, attname, format_type(atttypid, atttypmod), attnotnull, attacl::text"
    " FROM pg_attribute WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace::regnamespace::text !~"
    " '^(pg_|information)')",
    "functions": "SELECT pg_get_functiondef(oid), proacl::text FROM pg_proc WHERE pronamespace::regnamespace::text !~"
    " '^(pg_|information)'",
    "triggers": "SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE NOT tgisinternal",
    "constraints": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace::regnamespace::text"
    " !~ '^(pg_|information)'",
    "parameters": "SELECT parname, paracl::text FROM pg_parameter_acl",
    "replicated": "SELECT name, relation, shadow, key::text, structure, triggers::text FROM concord.replicated_table",
    "site": "SELECT name, incarnation, heartbeat, stamp_floor, format FROM concord.site",
}


def catalogue(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(map(str, site.rows(query))) for name, query in CATALOGUE.items()}  # type: ignore[misc]


@pytest.fixture
def bare(server_with_logins: Server, database: Any) -> Iterator[Bare]:
    both = Bare(*(site_on(server_with_logins, name, database().name) for name in ("london", "capetown")))
    both.run(*TABLES)
    yield both
    for site in both.sites:
        site.connection.close()


def test_after_provisioning_nothing_is_found_wrong(bare: Bare) -> None:
    provisioning.provision(bare.installations())
    assert provisioning.check(bare.installations()) == []


def test_before_provisioning_the_check_says_so(bare: Bare) -> None:
    assert provisioning.check(bare.installations()) == [
        f"{name}: is not provisioned; run `provision`" for name in ("london", "capetown")
    ]


def test_a_second_provisioning_changes_nothing(bare: Bare) -> None:
    provisioning.provision(bare.installations())
    bare.london.run("UPDATE parent SET name = 'changed'")
    before = catalogue(bare.london), bare.london.rows('TABLE concord."public.parent"')

    provisioning.provision(bare.installations())

    assert (catalogue(bare.london), bare.london.rows('TABLE concord."public.parent"')) == before


def test_a_table_added_later_is_provisioned_beside_the_others(bare: Bare) -> None:
    first = [table for table in bare.installations()[0].tables if table.name == "public.parent"]
    provisioning.provision(bare.installations(first))
    assert provisioning.check(bare.installations()) == [
        f'{name}: ops.Odd "Child is not provisioned; run `provision`. If that refuses it, take it out of the'
        " configuration"
        for name in ("london", "capetown")
    ]

    provisioning.provision(bare.installations())

    assert provisioning.check(bare.installations()) == []


def test_the_printed_script_run_by_psql_gives_the_same_site(bare: Bare, server_with_logins: Server) -> None:
    scripts = dict(provisioning.sql(bare.installations()))
    provisioning.provision(bare.installations()[:1])
    psql = [server_with_logins.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    ran = subprocess.run(
        [*psql, server_with_logins.uri(bare.capetown.database)],
        input=scripts["capetown"], text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert (ran.returncode, ran.stderr) == (0, "")
    assert provisioning.check(bare.installations()) == []
    ours, theirs = catalogue(bare.london), catalogue(bare.capetown)
    here, there = (owner.role(site.database) for site in bare.sites)
    assert {
        name: str(rows).replace("capetown", "london").replace(there, here) for name, rows in theirs.items()
    } == {name: str(rows) for name, rows in ours.items()}


def test_removing_leaves_the_tables_and_their_rows(bare: Bare) -> None:
    without = "SELECT nspname FROM pg_namespace WHERE nspname ~ '^concord'"
    before = [bare.london.rows(CATALOGUE[part]) for part in ("triggers", "constraints")]
    provisioning.provision(bare.installations())

    provisioning.remove(bare.installations())

    assert bare.london.rows(without) == []
    assert [bare.london.rows(CATALOGUE[part]) for part in ("triggers", "constraints")] == before
    assert bare.london.rows("TABLE parent") == [(1, "one")]
    bare.london.run("TRUNCATE parent CASCADE")
    provisioning.provision(bare.installations())
    assert provisioning.check(bare.installations()) == []


def test_users_write_while_a_site_is_provisioned_again_and_nobody_waits_for_the_other(bare: Bare) -> None:
    provisioning.provision(bare.installations())
    ended, refused, written = threading.Event(), list[Exception](), Counter[int]()

    def write(key: int) -> None:
        with bare.london.log_in(bare.london.superuser) as user:
            while not ended.is_set():
                try:
                    user.execute("INSERT INTO parent VALUES (%s, '')", [key])
                    user.execute("DELETE FROM parent WHERE id = %s", [key])
                    written[key] += 1
                except psycopg.Error as error:
                    refused.append(error)

    with ThreadPoolExecutor() as users:
        for key in (2, 3):
            users.submit(write, key)
        try:
            for _ in range(5):
                provisioning.provision(bare.installations())
        finally:
            ended.set()  # or a refused provisioning would leave the users at work for ever
    assert refused == []
    assert min(written.values()) > 8


ALTERED = {
    "ALTER TABLE public.parent DISABLE TRIGGER zz_concord_capture": "a capture trigger is missing, disabled or altered",
    "ALTER TABLE public.parent ENABLE TRIGGER zz_concord_capture": "a capture trigger is missing, disabled or altered",
    "ALTER TABLE public.parent ENABLE REPLICA TRIGGER zz_concord_update": "a capture trigger is missing,",
    "ALTER TABLE public.parent DISABLE TRIGGER zz_concord_delete": "a capture trigger is missing, disabled or altered",
    "DROP TRIGGER zz_concord_truncate ON public.parent": "a capture trigger is missing, disabled or altered",
    'CREATE OR REPLACE FUNCTION concord."capture public.parent"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER'
    " SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'": "a capture trigger is missing, disabled or",
    'CREATE OR REPLACE FUNCTION concord."update public.parent"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER'
    " SET search_path = pg_catalog, pg_temp SET jit = off AS 'BEGIN RETURN NULL; END'": "a capture trigger is missing,",
    'ALTER FUNCTION concord."delete public.parent"() RESET search_path': "a capture trigger is missing, disabled or",
    'ALTER FUNCTION concord."capture public.parent"() SECURITY INVOKER': "a capture trigger is missing, disabled or",
    'ALTER FUNCTION concord."capture public.parent"() RESET search_path': "a capture trigger is missing, disabled or",
    "ALTER TABLE public.parent ADD note text": "has other columns than when it was provisioned",
    "ALTER TABLE public.parent DROP name": "has other columns than when it was provisioned",
    "ALTER TABLE public.parent ALTER name TYPE varchar(9)": "has other columns than when it was provisioned",
    "ALTER TABLE public.parent RENAME name TO title": "has other columns than when it was provisioned",
}


@pytest.mark.parametrize("alteration", ALTERED)
def test_what_was_altered_since_is_noticed_by_the_next_link_and_by_the_check(
    pair: MakePair, alteration: str
) -> None:
    # F51, F53
    sites = pair(*TABLES)
    sites.capetown.run(alteration)

    with pytest.raises(StructureChanged, match=f"capetown: public.parent:? {ALTERED[alteration]}"):
        sites.run()
    with pytest.raises(StructureChanged, match=f"capetown: public.parent:? {ALTERED[alteration]}"):
        sites.run("reverse")
    assert any(ALTERED[alteration] in line for line in check(sites))


def test_a_trigger_that_was_missing_is_told_with_its_remedy_until_the_table_is_initialized_again(
    pair: MakePair,
) -> None:
    sites = pair(*TABLES)
    installations = [installation(site, sites.tables) for site in sites.sites]
    assert provisioning.provision(installations) == [], "all is well"
    sites.capetown.run("DROP TRIGGER zz_concord_capture ON parent", "UPDATE parent SET name = 'unseen'")
    (line,) = check(sites)
    assert line.endswith(
        "run `provision`, then `initialize NAME` for each synchronization that carries the table"
    )

    (told,) = provisioning.provision(installations)

    assert told.startswith("london_capetown: public.parent: changes may have been missed")
    assert "run `initialize london_capetown`" in told
    with pytest.raises(NotInitialized, match=r"public\.parent"):
        sites.run()
    assert provisioning.provision(installations) == [], "it was said"


def check(sites: Pair) -> list[str]:
    return provisioning.check([installation(site, sites.tables) for site in sites.sites])


def test_a_table_that_was_dropped_is_noticed(pair: MakePair) -> None:
    sites = pair(*TABLES)
    sites.capetown.run("DROP TABLE parent CASCADE")
    with pytest.raises(StructureChanged, match=r"capetown: public.parent is gone"):
        sites.run()
    assert any("public.parent does not exist" in line for line in check(sites))


@pytest.mark.spark
def test_a_column_added_alike_at_both_sites_works_after_provisioning_again(pair: MakePair) -> None:
    sites = pair(*TABLES)
    for site in sites.sites:
        site.run("ALTER TABLE parent ADD note text")
    provisioning.provision([installation(site, sites.tables) for site in sites.sites])
    sites.london.run("UPDATE parent SET note = 'new'")

    sites.settle()

    assert sites.capetown.rows("SELECT note FROM parent") == [("new",)]


#: A right of the applier's outside of the replication set, and on what.
ELSEWHERE = {
    "GRANT UPDATE ON private TO {applier}": "public.private",
    "GRANT UPDATE (note) ON private TO {applier}": "public.private",
    "GRANT INSERT (id) ON private TO PUBLIC": "public.private",
    "GRANT TRUNCATE ON private TO {applier}": "public.private",
    "CREATE VIEW seen AS SELECT id FROM private; GRANT DELETE ON seen TO {applier}": "public.seen",
    "CREATE VIEW seen AS SELECT * FROM private; GRANT UPDATE (note) ON seen TO {applier}": "public.seen",
    "CREATE VIEW seen AS SELECT count(*) AS n FROM private; CREATE RULE r AS ON INSERT TO seen DO INSTEAD DELETE FROM"
    " private; GRANT INSERT ON seen TO {applier}": "public.seen",
    "CREATE TABLE parts (id int) PARTITION BY LIST (id); GRANT INSERT ON parts TO {applier}": "public.parts",
}


@pytest.mark.parametrize("statements", ELSEWHERE)
def test_what_the_applier_may_write_although_no_link_does_is_named(bare: Bare, statements: str) -> None:
    tables = bare.installations()[0].tables
    bare.london.run(
        "CREATE TABLE private (id int PRIMARY KEY, note text)",
        "CREATE VIEW only_read AS SELECT count(*) AS n FROM private",
        f"GRANT SELECT ON private TO {APPLIER}",
        f"GRANT ALL ON only_read TO {APPLIER}",
    )
    provisioning.provision(bare.installations(tables))
    assert provisioning.check(bare.installations(tables)) == []

    bare.london.run(*statements.format(applier=APPLIER).split("; "))

    assert provisioning.check(bare.installations(tables)) == [
        f"london: the applier {APPLIER} may write {ELSEWHERE[statements]}, which no link does; revoke it"
    ]


def test_a_key_that_is_another_than_before_is_refused(pair: MakePair) -> None:
    sites = pair(*TABLES)
    for site in sites.sites:
        site.run("ALTER TABLE parent ADD code int NOT NULL UNIQUE DEFAULT 7")
    tables = [
        t.model_copy(update={"key": ("code",)} if t.name == "public.parent" else {}) for t in sites.tables
    ]
    found = provisioning.check([installation(site, tables) for site in sites.sites])
    assert any("the key of public.parent was id when it was provisioned" in line for line in found)


@pytest.fixture
def capetown_away(bare: Bare) -> list[Installation]:
    """The tables that both sites are to carry; Capetown's database does not answer."""
    london, capetown = bare.installations()
    nowhere = Credentials(host="127.0.0.1", port=1, database="nowhere", user="nobody")
    return [london, replace(capetown, installer=nowhere)]


def test_a_site_that_does_not_answer_does_not_stop_the_others(
    bare: Bare, capetown_away: list[Installation]
) -> None:
    # S4-176
    with pytest.raises(SiteUnavailable, match="provisioned: london") as raised:
        provisioning.provision(capetown_away)
    assert raised.value.message.count("capetown: connection refused (127.0.0.1:1)") == 1
    assert raised.value.message.count("capetown") == 1
    assert [line.partition(":")[0] for line in provisioning.check(capetown_away)] == ["capetown"]
    provisioning.provision(bare.installations())
    assert provisioning.check(bare.installations()) == []
    with pytest.raises(SiteUnavailable, match="removed from: london"):
        provisioning.remove(capetown_away)
    assert bare.london.value("SELECT to_regclass('concord.site')") is None


def test_the_script_of_every_site_that_answers_is_printed(capetown_away: list[Installation]) -> None:
    scripts = provisioning.sql(capetown_away)
    assert next(scripts)[0] == "london"
    with pytest.raises(SiteUnavailable, match="capetown: connection refused"):
        next(scripts)


def test_nothing_is_written_anywhere_while_a_site_that_answers_is_unfit(
    bare: Bare, capetown_away: list[Installation]
) -> None:
    bare.london.run("ALTER TABLE parent ENABLE ROW LEVEL SECURITY")
    with pytest.raises(ProvisioningRefused, match="row-level security") as raised:
        provisioning.provision(capetown_away)
    assert "capetown: connection refused" in raised.value.message
    assert bare.london.value("SELECT to_regclass('concord.site')") is None


def test_what_every_site_is_provisioned_with_changes_together_with_its_format() -> None:
    """Links know by the format that a site lacks something: raise it, and write both here."""
    digest = sha256("\n".join(control.statements("london")).encode()).hexdigest()[:8]
    assert (control.FORMAT, digest) == (28, "c1b83c67")


def test_a_site_of_an_earlier_version_is_brought_up_to_date(pair: MakePair) -> None:
    sites = pair(*TABLES)
    sites.capetown.run(
        "ALTER TABLE concord.link_state DROP COLUMN forced_at",
        "ALTER TABLE concord.replicated_table DROP COLUMN private",
        "ALTER TABLE concord.conflict DROP COLUMN withheld",
        "ALTER TABLE concord.site DROP COLUMN conflicts_kept CASCADE",
        "DROP FUNCTION concord.purge_conflicts",
        f"GRANT DELETE ON concord.conflict TO {APPLIER}",
        f"GRANT UPDATE (identity, incarnation) ON concord.site TO {APPLIER}",
        "DROP TABLE concord.overturn, concord.secret CASCADE",
        "DROP FUNCTION concord.vector_newest",
        "UPDATE concord.site SET format = format - 1",
    )
    with pytest.raises(
        NotProvisioned, match=r"capetown: was provisioned by an earlier version of Concord; run"
    ):
        sites.run()
    with pytest.raises(
        NotProvisioned, match=r"capetown: was provisioned by an earlier version of Concord; run"
    ):
        purge_conflicts(sites.capetown.access, timedelta(30), pendulum.now("UTC"), dry_run=False)
    provisioning.provision([installation(site, sites.tables) for site in sites.sites])
    assert sites.run().total("acquired") == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sites.capetown.as_applier("DELETE FROM concord.conflict")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        sites.capetown.as_applier("UPDATE concord.site SET incarnation = 7")


def test_a_site_keeps_conflicts_for_as_long_as_it_was_provisioned_to(pair: MakePair) -> None:
    sites = pair(*TABLES)
    shorter = [installation(site, sites.tables, conflicts_kept=timedelta(days=7)) for site in sites.sites]
    assert provisioning.check(shorter) == [
        f"{name}: keeps conflicts for 30 days, and the configuration says 7 days; run `provision`"
        for name in ("london", "capetown")
    ]
    now = pendulum.now("UTC")
    with pytest.raises(NotProvisioned, match=r"london: keeps conflicts for 30 days, longer than"):
        purge_conflicts(sites.london.access, timedelta(days=7), now, dry_run=False)
    provisioning.provision(shorter)
    assert provisioning.check(shorter) == []
    assert purge_conflicts(sites.london.access, timedelta(days=7), now, dry_run=False) == 0
