"""Provisioning keeps or takes away the proof that two sites are equal, and names the proof that is asked for."""

import pytest

from concord.databases.postgresql.capture import triggers
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.messages.errors import NotInitialized, SitesDiffer
from tests.given.fixtures import MakePair
from tests.given.site import provision_site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, isbn text UNIQUE)",
    "INSERT INTO book SELECT n, 'book ' || n, 'isbn ' || n FROM generate_series(1, 20) n",
)
SHELF = ("CREATE TABLE shelf (id int PRIMARY KEY, place text)", "INSERT INTO shelf VALUES (1, 'attic')")


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK, *SHELF)


def test_provisioning_over_triggers_that_were_off_demands_a_new_proof(sites: Pair) -> None:
    """F51: mending the triggers must not hide the changes they missed."""
    sites.london.run(
        "ALTER TABLE shelf DISABLE TRIGGER ALL",
        "UPDATE shelf SET place = 'unseen'",
        "ALTER TABLE shelf ENABLE TRIGGER ALL",
    )
    provision_site(sites.london, sites.tables)
    with pytest.raises(NotInitialized, match=r"public\.shelf"):
        sites.run()
    with pytest.raises(SitesDiffer, match=r"public\.shelf"):
        declare_equal(sites.job())


def test_provisioning_again_over_untouched_triggers_keeps_the_proof(sites: Pair) -> None:
    proven = "SELECT link, role, initialized, history FROM concord.link_state ORDER BY link, role"
    before = sites.london.rows(proven)
    provision_site(sites.london, sites.tables)
    assert sites.london.rows(proven) == before
    sites.london.run("UPDATE shelf SET place = 'cellar'")
    assert carried(sites.run()).applied == len(sites.london.rows("TABLE shelf"))
    assert sites.equal


def test_a_key_of_another_type_than_its_shadow_is_refused(sites: Pair) -> None:
    for site in sites.sites:
        site.run("ALTER TABLE shelf ALTER COLUMN id TYPE bigint")
    with pytest.raises(AssertionError, match="was of type integer when it was provisioned and is bigint now"):
        provision_site(sites.london, sites.tables)


def test_equal_rows_inserted_at_both_sites_before_the_start_are_no_conflict(pair: MakePair) -> None:
    """Rule 8: London's inserts were captured, Cape Town's were not; the proof found them equal."""
    sites = pair("CREATE TABLE tag (id int PRIMARY KEY, name text)")
    sites.london.run("INSERT INTO tag SELECT n, 'tag ' || n FROM generate_series(1, 9) n")
    sites.capetown.run(
        "ALTER TABLE tag DISABLE TRIGGER ALL",
        "INSERT INTO tag SELECT n, 'tag ' || n FROM generate_series(1, 9) n",
        triggers.enabling("tag"),
    )
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []


def test_a_table_added_later_is_proven_alone_while_the_others_differ(sites: Pair) -> None:
    for site in sites.sites:
        site.run("UPDATE concord.link_state SET initialized = initialized - 'public.shelf'")
    sites.london.run("UPDATE book SET title = 'edited meanwhile' WHERE id = 1")
    assert list(declare_equal(sites.job())) == ["public.shelf"]
    sites.settle()
    assert sites.equal
