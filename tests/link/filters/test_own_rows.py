"""Users change only the rows that their site owns, where the configuration refuses the others (S2-23, S2-28)."""

import random
from collections.abc import Sequence

import psycopg
import pytest

from concord.databases import provisioning
from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.tables.replication_set import NotOwned, ReplicatedTable
from tests.given.bare_sites import installation
from tests.given.fixtures import MakePair
from tests.given.owned_books import BOOKS, OWNERS, owned_books
from tests.given.site import APPLICATION, Site
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

LISTED = owned_books(columns=("id", "region", "title"))


def checked(sites: Pair, table: ReplicatedTable) -> list[str]:
    return list(provisioning.check([installation(site, (table,)) for site in sites.sites]))


def provisioned(sites: Pair, table: ReplicatedTable) -> Pair:
    provisioning.provision([installation(site, (table,)) for site in sites.sites])
    return Pair(sites.london, sites.capetown, (table,), sites.spark)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    """Books 1 to 4 are London's, 5 to 9 Cape Town's; `seen` does not travel."""
    made = Pair(*pair().sites, (LISTED,), lambda: pytest.fail("nothing here needs Spark"))
    for site in made.sites:
        site.run(*BOOKS, "GRANT ALL ON book TO an_application")
    provisioned(made, LISTED)
    declare_equal(made.job())
    return made


def refused(site: Site, statement: str, *, keep: bool = False) -> bool:
    """Does it fail as one whose row another site owns?"""
    said = f"{site.name} may change only its own rows of public.book"
    with site.log_in(APPLICATION, autocommit=False) as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            return error.diag.message_primary == said
        finally:
            if not keep:
                connection.rollback()
    return False


@pytest.mark.parametrize(
    ("expected", "statements"),
    [
        (
            True,
            (
                "UPDATE book SET title = 'x' WHERE id = 5",
                "UPDATE book SET title = 'x' WHERE id IN (1, 5)",
                "DELETE FROM book WHERE id = 5",
                "INSERT INTO book VALUES (10, 2, 'x')",
                "INSERT INTO book VALUES (10, NULL, 'x')",
                "INSERT INTO book VALUES (5, 1, 'x') ON CONFLICT (id) DO UPDATE SET title = 'x'",
                "UPDATE book SET region = 1 WHERE id = 5",
                "UPDATE book SET region = 3 WHERE id = 1",
                "UPDATE book SET region = NULL WHERE id = 1",
            ),
        ),
        (
            False,
            (
                "UPDATE book SET title = 'x' WHERE id = 1",
                "DELETE FROM book WHERE id = 1",
                "INSERT INTO book VALUES (10, 1, 'x')",
                "UPDATE book SET region = 2 WHERE id = 1",
                "UPDATE book SET id = 11 WHERE id = 1",
                "UPDATE book SET title = title",
                "UPDATE book SET seen = 1",
            ),
        ),
    ],
)
def test_a_user_changes_only_rows_of_the_site(sites: Pair, expected: bool, statements: Sequence[str]) -> None:
    """S2-28: an owner may give a row to another. A column that does not travel is each site's own."""
    found = {statement: refused(sites.london, statement) for statement in statements}
    assert found == dict.fromkeys(statements, expected)


def test_users_who_change_only_their_own_rows_have_no_conflicts(sites: Pair) -> None:
    """S2-23: rows change their owners, are deleted and made again, and whatever is refused stays as it is."""
    chance = random.Random(23)
    kept = 0
    for number in range(120):
        site = chance.choice(sites.sites)
        key, region = chance.randint(1, 12), chance.randint(1, 2)
        statement = chance.choice(
            (
                f"UPDATE book SET title = 'edit {number}' WHERE id = {key}",
                f"UPDATE book SET region = {region} WHERE id = {key}",
                f"DELETE FROM book WHERE id = {key}",
                f"INSERT INTO book VALUES ({key + number * 100}, {region}, 'new {number}')",
            )
        )
        before = site.rows("SELECT * FROM book ORDER BY id")
        if refused(site, statement, keep=True):
            assert site.rows("SELECT * FROM book ORDER BY id") == before
            kept += 1
        if number % 7 == 0:
            sites.run(chance.choice(("forward", "reverse")))
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []
    assert 20 < kept < 100, "the histories show something"


def test_a_link_writes_rows_of_every_owner(sites: Pair) -> None:
    """Of the applier's writes nothing is refused: a row that came is changed at its new owner's site alone."""
    sites.london.run(
        "UPDATE book SET region = 2, title = 'given' WHERE id = 1", "DELETE FROM book WHERE id = 2"
    )
    sites.run()
    assert refused(sites.london, "UPDATE book SET title = 'again' WHERE id = 1")
    assert not refused(sites.capetown, "UPDATE book SET title = 'ours' WHERE id = 1", keep=True)
    sites.settle()
    assert sites.london.rows("SELECT region, title FROM book WHERE id = 1") == [(2, "ours")]
    assert sites.conflicts() == []


def test_provisioning_makes_alters_and_takes_what_refuses(sites: Pair) -> None:
    assert checked(sites, LISTED) == []
    sites.london.run("ALTER TABLE book DISABLE TRIGGER concord_own_rows_update")
    assert checked(sites, LISTED) == [
        "london: public.book lacks triggers that refuse changes of others' rows; run `provision`"
    ]
    turned = owned_books(
        columns=LISTED.columns, owners=dict(zip(OWNERS, reversed(OWNERS.values()), strict=True))
    )
    assert len(checked(sites, turned)) == 2
    provisioned(sites, turned)
    assert checked(sites, turned) == []
    assert not refused(sites.london, "UPDATE book SET title = 'x' WHERE id = 5")
    counted = turned.model_copy(update={"not_owned": NotOwned.COUNT})
    assert len([line for line in checked(sites, counted) if "not_owned: refuse is gone" in line]) == 2
    provisioned(sites, counted)
    assert checked(sites, counted) == []
    assert not refused(sites.london, "UPDATE book SET title = 'x'")


def test_a_change_that_passes_the_triggers_travels_and_is_counted(sites: Pair) -> None:
    """S2-28: a superuser in replica role is refused nothing, and what he does is not lost."""
    sites.capetown.run(
        "SET session_replication_role = replica",
        "UPDATE book SET title = 'by force' WHERE id = 1",
        "RESET session_replication_role",
    )
    report = sites.run("reverse")
    assert (report.total("not_owned"), report.total("applied")) == (1, 1)
    assert sites.equal
