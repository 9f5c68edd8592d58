"""One value used at both sites: the greater version keeps it, the other row gives it up, and nothing is lost.

All scenarios are lived in one run, each in keys of its own, and once with each link first.
"""

from collections.abc import Iterator

import pytest

from concord.versions.conflict import ConflictType, LostBy, loss_id
from embedded.postgres import Server
from tests.given import version_account
from tests.given.at_rest import CONTROL
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.site import Site
from tests.link.constraints.lived_pair import Life, live

TABLES = (
    "CREATE TABLE person (id int PRIMARY KEY, name text, email text UNIQUE, phone text UNIQUE)",
    "INSERT INTO person VALUES (30, 'old', 'old', NULL), (31, 'older', NULL, NULL), (32, 'oldest', NULL, NULL)",
    "CREATE TABLE badge (number int PRIMARY KEY, code text NOT NULL UNIQUE, owner text)",
    "CREATE TABLE room (id int PRIMARY KEY, name text, closed boolean NOT NULL DEFAULT false)",
    "CREATE UNIQUE INDEX room_open ON room (lower(name)) WHERE NOT closed",
    "CREATE TABLE stay (id int PRIMARY KEY, during int4range, EXCLUDE USING gist (during WITH &&))",
    "CREATE TABLE slot (id int PRIMARY KEY, place int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TABLE booking (id int PRIMARY KEY, since date, until date,"
    " EXCLUDE USING gist (daterange(since, until) WITH &&))",
    "CREATE TABLE seat (id int PRIMARY KEY, place int)",
    "CREATE UNIQUE INDEX seat_place ON seat (coalesce(place, 0))",
    "CREATE TABLE nick (a int, b int, name text, PRIMARY KEY (a, b), UNIQUE NULLS NOT DISTINCT (b, name))",
)


def happen(london: Site, capetown: Site) -> None:
    """The edits of all scenarios, each later than the one before it."""
    for site, statement in (
        (capetown, "INSERT INTO person VALUES (1, 'theirs', 'one@x', NULL)"),
        (london, "INSERT INTO person VALUES (2, 'ours', 'one@x', NULL)"),
        (london, "INSERT INTO person VALUES (3, 'ours', 'two@x', NULL)"),
        (capetown, "INSERT INTO person VALUES (4, 'theirs', 'two@x', NULL)"),
        # F40: 12 meets 11 on email and 13 on phone
        (capetown, "INSERT INTO person VALUES (11, 'least', 'f40@x', NULL)"),
        (london, "INSERT INTO person VALUES (12, 'between', 'f40@x', '40')"),
        (capetown, "INSERT INTO person VALUES (13, 'greatest', NULL, '40')"),
        # the value was the row's of common history
        (london, "UPDATE person SET email = 'new' WHERE id = 30"),
        (london, "UPDATE person SET email = 'old' WHERE id = 31"),
        (capetown, "UPDATE person SET email = 'new' WHERE id = 32"),
        # 41 wins its own key, and loses the value to another
        (london, "INSERT INTO person VALUES (41, 'beaten', 'first@x', NULL)"),
        (capetown, "INSERT INTO person VALUES (41, 'winner of the key', 'taken@x', NULL)"),
        (london, "INSERT INTO person VALUES (42, 'winner of the value', 'taken@x', NULL)"),
        (capetown, "INSERT INTO badge VALUES (1, 'gold', 'theirs')"),
        (london, "INSERT INTO badge VALUES (2, 'gold', 'ours')"),
        (london, "INSERT INTO badge VALUES (3, 'silver', 'ours')"),
        (capetown, "INSERT INTO badge VALUES (4, 'silver', 'theirs')"),
        (london, "INSERT INTO room VALUES (1, 'Blue')"),
        (capetown, "INSERT INTO room VALUES (2, 'BLUE', false), (3, 'blue', true)"),
        (london, "INSERT INTO stay VALUES (1, '[10,20)')"),
        (capetown, "INSERT INTO stay VALUES (2, '[15,25)'), (3, '[25,30)')"),
        (capetown, "INSERT INTO slot VALUES (1, 7)"),
        (london, "INSERT INTO slot VALUES (2, 7)"),
        (london, "INSERT INTO booking VALUES (1, '2026-01-01', '2026-02-01')"),
        (capetown, "INSERT INTO booking VALUES (2, '2026-01-10', '2026-03-01')"),
        (london, "INSERT INTO seat VALUES (1, NULL)"),
        (capetown, "INSERT INTO seat VALUES (2, 0)"),
        (london, "INSERT INTO nick VALUES (1, 5, NULL)"),
        (capetown, "INSERT INTO nick VALUES (2, 5, NULL)"),
    ):
        site.run(statement)


@pytest.fixture(scope="module", params=["forward", "reverse"])
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "uniqueness", TABLES, happen)


def test_the_sites_are_equal_and_every_constraint_held_after_every_link(life: Life) -> None:
    assert life.sites.equal
    assert life.unsound == []


def test_a_further_run_writes_nothing_but_its_own_state(life: Life) -> None:
    assert life.quiet == set(CONTROL)


def test_the_later_row_keeps_the_value_and_the_other_gives_it_up_and_stays(life: Life) -> None:
    """F39: whichever site it is of, and whichever link runs first."""
    assert life.rows("SELECT id, name, email FROM person WHERE id < 10 ORDER BY 1") == [
        (1, "theirs", None),
        (2, "ours", "one@x"),
        (3, "ours", None),
        (4, "theirs", "two@x"),
    ]


def test_the_loser_stands_in_the_ledger_once_with_both_rows(life: Life) -> None:
    (entry,) = life.lost("person", 1, 2)
    assert (entry["type"], entry["key"], entry["resolver"]) == ("uniqueness", ["1"], "latest_timestamp")
    assert (entry["winner_site"], entry["loser_site"]) == ("london", "capetown")
    assert (entry["winner_row"]["id"], entry["loser_row"]["id"]) == ("2", "1")
    assert entry["winner_row"]["email"] == entry["loser_row"]["email"] == "one@x"
    assert entry["reason"] == (
        "person_email_key: another row has the value, changed_at differs; email becomes NULL"
    )


def test_a_row_that_collides_with_two_others_is_judged_against_each(life: Life) -> None:
    """F40: it loses one value to the greater, and takes the other from the lesser."""
    assert life.rows("SELECT id, email, phone FROM person WHERE id BETWEEN 11 AND 13 ORDER BY 1") == [
        (11, None, None),
        (12, "f40@x", None),
        (13, None, "40"),
    ]
    assert {(entry["key"][0], entry["winner_row"]["id"]) for entry in life.lost("person", 11, 12, 13)} == {
        ("11", "12"),
        ("12", "13"),
    }


def test_a_value_that_a_row_gives_up_may_be_taken_and_only_a_value_in_use_is_lost(life: Life) -> None:
    assert life.rows("SELECT id, email FROM person WHERE id BETWEEN 30 AND 32 ORDER BY 1") == [
        (30, None),
        (31, "old"),
        (32, "new"),
    ]
    (entry,) = life.lost("person", 30, 31, 32)
    assert entry["loser_row"] == {"id": "30", "name": "old", "email": "new", "phone": None}


def test_the_winner_of_a_key_may_lose_its_value_and_both_are_logged(life: Life) -> None:
    assert life.rows("SELECT id, name, email FROM person WHERE id IN (41, 42) ORDER BY 1") == [
        (41, "winner of the key", None),
        (42, "winner of the value", "taken@x"),
    ]
    by_type = {entry["type"]: entry["loser_row"]["name"] for entry in life.lost("person", 41)}
    assert by_type == {"insert_insert": "beaten", "uniqueness": "winner of the key"}


def test_where_the_value_may_not_be_null_the_row_goes_and_stands_whole_in_the_ledger(life: Life) -> None:
    assert life.rows("SELECT number, code FROM badge WHERE number < 10 ORDER BY 1") == [
        (2, "gold"),
        (4, "silver"),
    ]
    losers = [entry["loser_row"] for entry in life.lost("badge", 1, 3)]
    assert sorted(losers, key=lambda row: row["number"]) == [
        {"number": "1", "code": "gold", "owner": "theirs"},
        {"number": "3", "code": "silver", "owner": "ours"},
    ]


def test_a_partial_index_on_an_expression_is_mended_likewise(life: Life) -> None:
    assert life.rows("SELECT id, name FROM room ORDER BY 1") == [(1, None), (2, "BLUE"), (3, "blue")]
    (entry,) = life.lost("room", 1, 2, 3)
    assert entry["loser_row"]["name"] == "Blue"


def test_an_exclusion_constraint_is_mended_likewise(life: Life) -> None:
    assert [key for key, during in life.rows("SELECT id, during FROM stay ORDER BY 1") if during] == [2, 3]
    (entry,) = life.lost("stay", 1, 2, 3)
    assert entry["loser_row"] == {"id": "1", "during": "[10,20)"}


@pytest.mark.parametrize("table", ["booking", "seat"])
def test_where_no_null_frees_the_row_it_goes(life: Life, table: str) -> None:
    """A range without an end meets as many, and the index gives NULL a value."""
    assert life.rows(f"SELECT id FROM {table}") == [(2,)]
    assert len(life.lost(table, 1)) == 1


def test_a_deferrable_constraint_is_mended_likewise(life: Life) -> None:
    """Replica role silences its trigger: nobody but the write step looks."""
    assert life.rows("SELECT id, place FROM slot ORDER BY 1") == [(1, None), (2, 7)]
    assert len(life.lost("slot", 1, 2)) == 1


def test_a_deferrable_constraint_needs_nobody_elses_violation_to_be_looked_at(pair: MakePair) -> None:
    """The database itself says nothing of it; and the first try already mends it."""
    sites = pair("CREATE TABLE slot (id int PRIMARY KEY, place int UNIQUE DEFERRABLE)")
    sites.capetown.run("INSERT INTO slot VALUES (1, 7)")
    sites.london.run("INSERT INTO slot VALUES (2, 7)")
    tries = At("hold_fence", lambda: None)
    carry(sites.job(), tries)
    assert tries.reached == 1
    settle(sites)
    assert sites.london.rows("TABLE slot ORDER BY 1") == [(1, None), (2, 7)]
    assert sites.equal


def test_where_nulls_collide_too_the_row_goes(life: Life) -> None:
    assert life.rows("SELECT a FROM nick") == [(2,)]


def test_two_values_that_one_insert_took_from_one_row_are_two_losses_in_the_ledger(pair: MakePair) -> None:
    """Both rows of the INSERT have one version: whom a row lost to, and by which rule, tells the losses apart (F26)."""
    sites = pair(TABLES[0])
    sites.london.run("INSERT INTO person VALUES (1, 'loser', 'one@x', '1')")
    sites.capetown.run("INSERT INTO person VALUES (2, 'mail', 'one@x', NULL), (3, 'phone', NULL, '1')")
    report = sites.run()
    logged = sites.conflicts()
    assert report.total("conflicts") == len(logged) == 2
    dots = {
        (version["origin"], version["changed_at"]) for each in logged if (version := each["winner_version"])
    }
    assert len(dots) == 1, "one version"
    for each in logged:
        rule = each["reason"].partition(":")[0]
        winner = each["winner_row"]["id"]
        by = LostBy(ConflictType.UNIQUENESS, f'"{rule.split("_")[1]}"', [winner])
        sides = [version_account.version(each[f"{side}_version"]) for side in ("winner", "loser")]
        assert (rule, winner) in {("person_email_key", "2"), ("person_phone_key", "3")}
        assert each["id"] == loss_id("public.person", ["1"], *sides, by)
    assert sum(each.total("conflicts") for each in sites.settle()) == 0
    assert sites.equal


def test_two_rows_that_lose_one_value_each_by_one_exclusion_are_two_losses(pair: MakePair) -> None:
    sites = pair(TABLES[5])
    sites.london.run("INSERT INTO stay VALUES (1, '[10,20)'), (2, '[20,30)')")
    sites.capetown.run("INSERT INTO stay VALUES (3, '[15,25)')")
    report = sites.run()
    assert report.total("conflicts") == len(sites.conflicts()) == 2
    sites.settle()
    assert sites.equal
