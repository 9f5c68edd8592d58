"""A refusal's advice to a person helps: each remedy is carried out as it is told."""

import psycopg
import pytest

from concord.databases import provisioning
from concord.messages.errors import (
    IdentityChanged,
    NotInitialized,
    PrivilegeMissing,
    SitesDiffer,
    StructureChanged,
)
from tests.given.comparison import compared
from tests.given.fixtures import MakePair
from tests.given.mapped_pair import installations
from tests.given.site import Site
from tests.given.snapshot_sites import Copies, content
from tests.given.strangers import initialized

pytestmark = pytest.mark.spark

MOOD = (
    "CREATE TYPE public.mood AS ENUM ('sad', 'happy')",
    "CREATE TABLE public.guest (id int PRIMARY KEY, mood public.mood)",
)


def test_other_labels_of_an_enumeration_are_named_instead_of_its_name_twice(pair: MakePair) -> None:
    sites = pair(*MOOD)
    sites.london.run("ALTER TYPE public.mood ADD VALUE 'it''s fine' BEFORE 'happy'")
    with pytest.raises(StructureChanged) as refused:
        sites.run("forward")
    said = refused.value.message
    assert "column mood is public.mood at both, with other labels: only london has 'it''s fine'" in said
    assert "column mood public.mood has other labels: only the new one has 'it''s fine'" in said
    assert "public.mood at capetown and public.mood" not in said
    sites.capetown.run("ALTER TYPE public.mood ADD VALUE 'it''s fine' BEFORE 'happy'")
    provisioning.provision(installations(sites.sites, sites.tables))
    sites.london.run("INSERT INTO guest VALUES (1, 'it''s fine')")
    sites.run("forward")
    assert sites.capetown.rows("SELECT mood::text FROM guest") == [("it's fine",)]


def test_labels_in_another_order_are_both_listed(pair: MakePair) -> None:
    sites = pair(*MOOD)
    sites.london.run(
        "ALTER TABLE public.guest DROP mood",
        "DROP TYPE public.mood",
        "CREATE TYPE public.mood AS ENUM ('happy', 'sad')",
        "ALTER TABLE public.guest ADD mood public.mood",
    )
    with pytest.raises(StructureChanged, match="'sad', 'happy' at capetown; 'happy', 'sad' at london"):
        sites.run("forward")


def test_a_column_that_is_computed_at_one_site_alone_is_told_as_such(pair: MakePair) -> None:
    sites = pair("CREATE TABLE public.guest (id int PRIMARY KEY, twice int)")
    sites.london.run(
        "ALTER TABLE public.guest DROP twice",
        "ALTER TABLE public.guest ADD twice int GENERATED ALWAYS AS (2 * id) STORED",
    )
    with pytest.raises(StructureChanged, match="column twice is generated at london and not at capetown"):
        sites.run("forward")


def test_row_level_security_says_to_disable_it_and_that_helps(pair: MakePair) -> None:
    """F94: `provision` refuses the table, so that it cannot be what helps."""
    sites = pair("CREATE TABLE public.guest (id int PRIMARY KEY)")
    sites.london.run("INSERT INTO guest VALUES (1)", "ALTER TABLE public.guest ENABLE ROW LEVEL SECURITY")
    with pytest.raises(PrivilegeMissing, match="row-level security") as refused:
        sites.run("forward")
    assert "DISABLE ROW LEVEL SECURITY" in refused.value.message
    assert "Run `provision`" not in refused.value.message
    sites.london.run("ALTER TABLE public.guest DISABLE ROW LEVEL SECURITY")
    assert sites.run("forward").total("applied") == 1


def test_a_connection_to_another_sites_database_is_told_as_that(pair: MakePair) -> None:
    sites = pair("CREATE TABLE public.guest (id int PRIMARY KEY)")
    sites.london.run("UPDATE concord.site SET name = 'newyork'")
    with pytest.raises(IdentityChanged, match="leads to the database that was provisioned as newyork; mend"):
        sites.run("forward")


def test_after_a_dropped_trigger_it_takes_an_initialization_and_a_comparison_is_not_enough(
    pair: MakePair,
) -> None:
    """No version says what was done meanwhile: only an initialization proves anew what both sites have in common."""
    sites = pair(
        "CREATE TABLE public.guest (id int PRIMARY KEY, name text)", "INSERT INTO guest VALUES (1, 'a')"
    )
    sites.london.run(
        "DROP TRIGGER zz_concord_capture ON guest",
        "UPDATE guest SET name = 'missed'",
        "INSERT INTO guest VALUES (2, 'new')",
    )
    with pytest.raises(StructureChanged) as refused:
        sites.run("forward")
    assert "run `provision`, then `initialize NAME`" in refused.value.message
    (said,) = provisioning.provision(installations(sites.sites, sites.tables))
    assert "run `initialize london_capetown`" in said
    with pytest.raises(NotInitialized):
        compared(sites, "apply", prefer="source")
    with pytest.raises(NotInitialized):
        sites.run("forward")
    with pytest.raises(SitesDiffer, match="how: merge keeps the rows of both"):
        initialized(sites)
    initialized(sites, "merge")
    sites.settle()
    assert sites.capetown.rows("TABLE guest ORDER BY 1") == [(1, "missed"), (2, "new")]
    assert sites.equal


def restored_elsewhere(site: Site) -> None:
    """Its connection leads to a copy of the database from now on."""
    site.wait_for_the_links_sessions_to_end()
    site.connection.close()
    copy = f"{site.database}_restored"
    server = {"host": site.host, "port": site.port, "user": site.superuser, "password": site.password}
    with psycopg.connect(**server, dbname="postgres", autocommit=True) as superuser:
        superuser.execute(f"CREATE DATABASE {copy} TEMPLATE {site.database}".encode())
    site.database = copy
    site.connection = site.log_in(site.superuser)


@pytest.mark.parametrize("end", ["london", "capetown"])
def test_a_restored_site_that_only_takes_part_in_snapshots_is_brought_back_as_it_is_told(
    late: Copies, end: str
) -> None:
    """It has no synchronization that `initialize --accept-restored` could be run for."""
    site = late.london if end == "london" else late.capetown
    restored_elsewhere(site)
    late.london.run("UPDATE flight SET delay = 1000 WHERE id = 6")
    told = (
        "if it has none but takes part in snapshots, run `provision --remove --site "
        f"{end}`, empty the copies of snapshots that are kept there, run `provision`, and refresh the snapshots in full"
    )
    with pytest.raises(IdentityChanged) as refused:
        late.refresh("late")
    assert told in refused.value.message
    assert any(told in line for line in provisioning.check(late.installations()))

    provisioning.remove([each for each in late.installations() if each.site == end])
    if site is late.capetown:
        site.run("TRUNCATE public.late")
    late.provision()
    late.refresh("late", full=True)
    content(late)
    late.london.run("UPDATE flight SET delay = 2000 WHERE id = 7")
    assert not late.refresh("late").full
    content(late)
    assert provisioning.check(late.installations()) == []
