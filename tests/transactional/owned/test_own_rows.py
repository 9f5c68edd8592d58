"""Each site publishes changes of its own rows alone, so that no transaction meets another's (S2-23, S2-28)."""

import random
from collections.abc import Callable

import psycopg
import pytest

from concord.configuration.configuration import Configuration
from concord.databases import provisioning
from concord.messages.errors import Problem, ProvisioningRefused
from concord.tables.replication_set import NotOwned
from concord.tables.row_filter_text import parse_row_filter
from tests.given.configured_replications import BOOKINGS, BOTH, section, written
from tests.given.owned_books import BOOKS, owned_books
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

Problems = Callable[[str | bytes], tuple[Problem, ...]]
OWNED = "owners: {london: id = 1, capetown: id = 2}"


@pytest.fixture(params=["both", "queued"])
def sites(replicated: Make, request: pytest.FixtureRequest) -> Replicated:
    made = replicated(BOOKS[:1], owned_books(), updates=request.param)
    made.london.run(
        "SET session_replication_role = replica", BOOKS[1], "RESET session_replication_role"
    )  # both owners' books
    made.initialize_both_ways()
    return made


def test_users_who_change_only_their_own_rows_stop_no_replication(sites: Replicated) -> None:
    """S2-23: a row changes its owner by a transaction of its owner's, which travels as any other.

    Where updates are queued, no policy decides anything.
    """
    chance = random.Random(23)
    refused = {site.name: 0 for site in sites.sites}
    for number in range(150):
        site, key = chance.choice(sites.sites), chance.randint(1, 9)
        statement = chance.choice(
            (
                f"UPDATE book SET title = 'edit {number}' WHERE id = {key}",
                f"UPDATE book SET region = {chance.randint(1, 2)} WHERE id = {key}",
                f"DELETE FROM book WHERE id = {key} AND title LIKE 'edit%'",
                f"INSERT INTO book VALUES ({number + 100}, {chance.randint(1, 2)})",
                f"UPDATE book SET title = title WHERE id = {key}",
            )
        )
        try:
            site.run(statement)
        except psycopg.errors.InsufficientPrivilege:
            refused[site.name] += 1
        if number % 20 == 0:
            sites.run_both()
    sites.run_both()
    assert sites.are_equal()
    assert min(refused.values()) >= 5, "the histories show something"
    assert [each.entries for each in sites.run_both()] == [0, 0]
    assert sites.london.rows("SELECT FROM concord.conflict") == []


def test_a_table_is_not_emptied_at_a_site_that_does_not_own_all_of_it(sites: Replicated) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="london may change only its own rows"):
        sites.london.run("TRUNCATE book")


def test_owners_are_told_by_columns_and_values_that_the_table_has(replicated: Make) -> None:
    sites = replicated(BOOKS[:1], owned_books(), updates="both")
    for where, message in (("area = 1", "filters by area"), ("region = 'x'", "cannot be filtered by")):
        sites.tables = (owned_books(owners={"london": parse_row_filter(where)}),)
        with pytest.raises(ProvisioningRefused, match=message):
            sites.provision()
    sites.tables = (owned_books(not_owned=NotOwned.COUNT),)
    assert [line for line in provisioning.check(sites.installations()) if "not_owned: refuse is gone" in line]


def test_a_replication_both_ways_knows_owners_whose_rows_no_other_changes(
    parse: Callable[[str | bytes], Configuration], problems: Problems
) -> None:
    both = BOTH + section("replications", {"a": BOOKINGS | {"updates": "both"}})

    def owned(text: str, more: str) -> str:
        return text.replace("at: {capetown: b.bookings}", f"{OWNED}\n        not_owned: {more}")

    [table] = parse(owned(both, "refuse")).replication("a").tables
    assert (table.not_owned, set(table.owners)) == (NotOwned.REFUSE, {"london", "capetown"})
    [counted] = problems(owned(both, "count"))
    assert "counts no changes of others' rows; write not_owned: refuse" in str(counted)
    [one_way] = problems(owned(written(a=BOOKINGS), "refuse"))
    assert "users of the publisher alone write" in str(one_way)
    [nobody] = problems(both.replace("at: {capetown: b.bookings}", "not_owned: refuse"))
    assert "no site owns a row, so nobody could change one; write owners" in str(nobody)
