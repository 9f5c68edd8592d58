"""Both sites write, and each replays the other's transactions (S2-06 to S2-09)."""

import random
import re
from collections.abc import Callable

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import Aside, SetAside
from concord.messages.errors import EntryConflict, HistoryLost, NotInitialized
from concord.transactional.upkeep import shown
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.fixtures import site_on
from tests.given.own_equality import OWN_EQUALITY
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated

STOCK = (
    "CREATE TABLE part (id int PRIMARY KEY, name text, price numeric, seen json)",
    "CREATE TABLE stock (depot text, part int REFERENCES part, pieces int, note text, PRIMARY KEY (depot, part))",
)
TABLES = ("public.part", "public.stock")


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    """Twenty parts at both sites."""
    made = replicated(STOCK, *TABLES, updates="both")
    made.london.run("INSERT INTO part SELECT n, 'part ' || n, n, '{}' FROM generate_series(1, 20) n")
    made.initialize_both_ways()
    return made


def test_each_sites_transactions_arrive_at_the_other_and_none_travels_back(sites: Replicated) -> None:
    """S2-09, S4-144, S4-145: what was replayed is known by its first statement, this replication's own level."""
    sites.london.run(
        "UPDATE part SET price = 100 WHERE id <= 3", "INSERT INTO stock VALUES ('l', 1, 5, 'new')"
    )
    sites.capetown.run("UPDATE part SET price = 200 WHERE id > 17", "DELETE FROM part WHERE id = 10")
    forward, reverse = sites.run_both()
    assert sites.are_equal()
    assert [(each.entries, each.operations) for each in (forward, reverse)] == [(2, 4), (2, 4)]
    again = sites.run_both()
    assert [(each.entries, each.operations) for each in again] == [(0, 0), (0, 0)]


def test_random_transactions_on_rows_of_their_own_end_equal_and_each_is_replayed_once(
    sites: Replicated,
) -> None:
    """S2-07, S2-08: London writes odd parts, and Cape Town even ones; runs come between."""
    chance = random.Random(1)
    committed = {"london": 0, "capetown": 0}
    replayed = {Direction.FORWARD: 0, Direction.REVERSE: 0}
    for _ in range(30):
        for odd, site in enumerate(reversed(sites.sites)):
            if chance.random() < 0.6:
                _write(chance, site.run, odd, site.name)
                committed[site.name] += 1
        if chance.random() < 0.4:
            direction = chance.choice(list(Direction))
            replayed[direction] += sites.run(direction=direction).entries
    for _ in range(2):
        forward, reverse = sites.run_both()
        replayed[Direction.FORWARD] += forward.entries
        replayed[Direction.REVERSE] += reverse.entries
    assert sites.are_equal()
    assert list(replayed.values()) == list(committed.values())


def _write(chance: random.Random, run: Callable[[str], object], odd: int, depot: str) -> None:
    part = chance.randrange(10) * 2 + odd or 20
    run(
        "BEGIN;"
        f"INSERT INTO part VALUES ({part}, 'anew', 1, '[1, 2]') ON CONFLICT (id) DO UPDATE SET price = part.price + 1;"
        f"INSERT INTO stock VALUES ('{depot}', {part}, 1, repeat('x', 3000))"
        " ON CONFLICT (depot, part) DO UPDATE SET pieces = stock.pieces + 1;"
        + chance.choice(["", f"DELETE FROM stock WHERE depot = '{depot}' AND part = {part};"])
        + "COMMIT"
    )


def test_what_cape_towns_users_wrote_before_the_copy_does_not_travel_and_what_they_write_after_it_does(
    replicated: Make,
) -> None:
    """S2-15: the copy replaces the first, and its own transaction does not travel either."""
    made = replicated(STOCK, *TABLES, updates="both")
    made.london.run("INSERT INTO part VALUES (1, 'London', 1, NULL)")
    made.capetown.run("INSERT INTO part VALUES (2, 'Cape Town', 2, NULL)")
    made.initialize_both_ways(replace=True)
    made.capetown.run("INSERT INTO part VALUES (3, 'Cape Town', 3, NULL)")
    _, reverse = made.run_both()
    assert reverse.operations == 1
    assert made.are_equal()
    assert [row[0] for row in made.rows("part")[0]] == [1, 3]


def test_a_way_back_that_was_not_begun_refuses_to_run(replicated: Make) -> None:
    made = replicated(STOCK, *TABLES, updates="both")
    made.initialize()
    made.run()
    with pytest.raises(NotInitialized):
        made.run(direction=Direction.REVERSE)
    made.initialize_both_ways()
    made.capetown.run(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        " WHERE slot_name LIKE 'concordback%' AND database = current_database()"
    )
    with pytest.raises(HistoryLost):
        made.run(direction=Direction.REVERSE)


@pytest.fixture
def contested(sites: Replicated) -> Replicated:
    """Both sites' users changed part 5; each transaction wrote another row as well."""
    sites.london.run(
        "BEGIN; UPDATE part SET price = 1 WHERE id = 1; UPDATE part SET price = 50 WHERE id = 5; COMMIT"
    )
    sites.capetown.run(
        "BEGIN; UPDATE part SET price = 2 WHERE id = 2; UPDATE part SET name = 'mine' WHERE id = 5; COMMIT"
    )
    return sites


def test_a_row_that_users_of_both_sites_changed_stops_both_directions_and_nothing_of_the_entry_stands(
    contested: Replicated,
) -> None:
    """S2-21, S2-24: what was committed before it is replayed."""
    before = contested.rows("part")
    for direction, site in ((Direction.FORWARD, "capetown"), (Direction.REVERSE, "london")):
        with pytest.raises(
            EntryConflict, match=rf"^{site}: entry \d+, .* public.part: it meets a row changed here"
        ):
            contested.run(direction=direction)
    assert contested.rows("part") == before


def test_a_person_sees_all_images_of_a_conflict_and_decides_by_leaving_out_the_operation_that_lost(
    contested: Replicated,
) -> None:
    """S2-22, S4-137: London's row stays; what else Cape Town's transaction wrote is replayed."""
    with pytest.raises(EntryConflict) as refused:
        contested.run(direction=Direction.REVERSE)
    number = int(re.findall(r"entry (\d+),", refused.value.message)[0])
    [_, lost] = shown(contested.job(Direction.REVERSE), dialect, number)
    assert [each["name"] for each in (lost.before, lost.row, lost.here) if each] == [
        "part 5",
        "mine",
        "part 5",
    ]
    assert [each["price"] for each in (lost.before, lost.row, lost.here) if each] == [5, 5, 50]

    contested.capetown.run("UPDATE part SET name = 'part 5', price = 50 WHERE id = 5")
    aside = SetAside(number=number, how=Aside.QUARANTINE, reason="London knows better", by="a person")
    assert contested.run(direction=Direction.REVERSE, set_aside=aside).set_aside == 1
    contested.run_both()
    assert contested.are_equal()
    assert contested.capetown.rows("SELECT id, price, name FROM part WHERE id IN (1, 2, 5) ORDER BY 1") == [
        (1, 1, "part 1"),
        (2, 2, "part 2"),
        (5, 50, "part 5"),
    ]
    [(kept,)] = contested.london.rows("SELECT operations FROM concord.skipped")
    assert (kept[0]["row"]["name"], kept[0]["here"]["price"]) == ("mine", 50)


@pytest.mark.parametrize(
    ("london", "capetown"),
    [
        ("UPDATE part SET price = 9 WHERE id = 3", "DELETE FROM part WHERE id = 3"),
        ("DELETE FROM part WHERE id = 3", "UPDATE part SET seen = '[]' WHERE id = 3"),
        ("INSERT INTO part VALUES (30, 'one')", "INSERT INTO part VALUES (30, 'other')"),
        ("UPDATE part SET id = 40 WHERE id = 3", "UPDATE part SET id = 41 WHERE id = 3"),
        ("UPDATE part SET price = 1.0 WHERE id = 3", "UPDATE part SET price = 1.00 WHERE id = 3"),
        ("UPDATE part SET id = 40 WHERE id = 3", "INSERT INTO part VALUES (40, 'other')"),
    ],
)
def test_each_kind_of_conflict_is_found_in_both_directions(
    sites: Replicated, london: str, capetown: str
) -> None:
    sites.london.run(london)
    sites.capetown.run(capetown)
    before = sites.rows("part")
    for direction in Direction:
        with pytest.raises(EntryConflict):
            sites.run(direction=direction)
    assert sites.rows("part") == before


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ("DELETE FROM part WHERE id = 3", "INSERT INTO stock VALUES ('c', 3, 1)"),
        ("UPDATE part SET id = 40 WHERE id = 3", "UPDATE stock SET part = 3 WHERE depot = 'd'"),
    ],
)
def test_a_child_whose_parent_the_other_site_has_deleted_stops_both_directions(
    sites: Replicated, parent: str, child: str
) -> None:
    """Each site's own check has passed. A parent that is missing for a moment within a transaction stops nothing."""
    later = "BEGIN; SET CONSTRAINTS ALL DEFERRED"
    sites.london.run("INSERT INTO stock VALUES ('d', 4, 1)")
    sites.run()
    sites.london.run(
        "BEGIN; INSERT INTO part VALUES (50); INSERT INTO stock VALUES ('e', 50, 1); COMMIT",
        "BEGIN; DELETE FROM stock WHERE depot = 'e'; DELETE FROM part WHERE id = 50; COMMIT",
        "ALTER TABLE stock ALTER CONSTRAINT stock_part_fkey DEFERRABLE",
        f"{later}; INSERT INTO stock VALUES ('f', 51, 1); INSERT INTO part VALUES (51); COMMIT",
        f"{later}; DELETE FROM part WHERE id = 51; DELETE FROM stock WHERE depot = 'f'; COMMIT",
    )
    assert sites.run().entries == 4
    sites.london.run(parent)
    sites.capetown.run(child)
    before = sites.rows("part"), sites.rows("stock")
    for direction in Direction:
        with pytest.raises(EntryConflict, match="a parent that the other site has deleted"):
            sites.run(direction=direction)
    assert (sites.rows("part"), sites.rows("stock")) == before


def test_a_child_finds_its_parent_by_the_foreign_keys_own_operator(replicated: Make) -> None:
    """Not by that of text, to which a session that knows pg_catalog alone would turn."""
    tables = (
        *OWN_EQUALITY,
        "CREATE TABLE part (id int PRIMARY KEY, name ext.citext UNIQUE)",
        "CREATE TABLE stock (id int PRIMARY KEY, part ext.citext REFERENCES part (name))",
    )
    sites = replicated(tables, "public.part", "public.stock", updates="both")
    sites.london.run("INSERT INTO part VALUES (1, 'Ann'), (2, 'Bob')")
    sites.initialize_both_ways()
    sites.london.run("INSERT INTO stock VALUES (1, 'ANN')", "UPDATE part SET name = 'ANN' WHERE id = 1")
    sites.run_both()
    assert sites.are_equal()
    sites.london.run("DELETE FROM part WHERE id = 2")
    sites.capetown.run("INSERT INTO stock VALUES (2, 'BOB')")
    for direction in Direction:
        with pytest.raises(EntryConflict, match="a parent that the other site has deleted"):
            sites.run(direction=direction)


def test_a_row_from_before_a_key_that_is_not_valid_is_no_conflict(replicated: Make) -> None:
    """PostgreSQL lets users edit it. Each edit stopped the replication, as if somebody had deleted the parent."""
    tables = (
        "CREATE TABLE part (id int PRIMARY KEY)",
        "CREATE TABLE stock (id int PRIMARY KEY, part int, note text)",
    )
    sites = replicated(tables, "public.part", "public.stock", updates="both")
    sites.london.run("INSERT INTO part VALUES (1)", "INSERT INTO stock VALUES (1, 99)")
    sites.initialize_both_ways()
    for site in sites.sites:
        site.run("ALTER TABLE stock ADD FOREIGN KEY (part) REFERENCES part NOT VALID")
    sites.london.run("BEGIN; UPDATE stock SET note = 'edited'; INSERT INTO stock VALUES (2, 1); COMMIT")
    sites.run_both()
    assert sites.are_equal()
    sites.london.run("UPDATE stock SET part = 1 WHERE id = 1")
    sites.capetown.run("DELETE FROM stock WHERE id = 2", "DELETE FROM part")
    with pytest.raises(EntryConflict, match="a parent that the other site has deleted"):
        sites.run()


def test_what_users_of_both_sites_did_alike_is_no_conflict(sites: Replicated) -> None:
    for site in sites.sites:
        site.run(
            "UPDATE part SET price = 9, seen = '{\"a\": 1}' WHERE id = 3",
            "DELETE FROM part WHERE id = 4",
            "INSERT INTO part VALUES (30, 'one', 1.50, NULL)",
            "UPDATE part SET id = 40 WHERE id = 5",
        )
    reports = sites.run_both()
    assert sites.are_equal()
    assert [(each.tables[0].alike, each.tables[0].applied) for each in reports] == [(4, 0), (4, 0)]


def test_a_truncate_is_refused_since_nobody_knows_which_rows_its_user_had_seen(sites: Replicated) -> None:
    sites.capetown.run("INSERT INTO stock VALUES ('c', 1, 1, NULL)")
    sites.london.run("TRUNCATE stock")
    with pytest.raises(EntryConflict, match="a truncate; delete the rows instead"):
        sites.run()
    assert len(sites.capetown.rows("TABLE stock")) == 1


def test_a_hub_carries_the_changes_of_each_spoke_to_the_other(
    replicated: Make, server_with_logins: Server, database: Callable[[], Database]
) -> None:
    """S2-26, S4-143: London is the one publisher; Cape Town and Oslo are its subscribers, and no others'."""
    spoke = replicated(STOCK, *TABLES, updates="both")
    oslo = site_on(server_with_logins, "capetown", database().name)
    oslo.run(*STOCK)
    other = Replicated(spoke.london, oslo, spoke.tables, f"{spoke.name}2", {"updates": "both"})
    other.provision()
    try:
        for each in (spoke, other):
            each.initialize_both_ways()
        spoke.capetown.run("INSERT INTO part VALUES (1, 'of Cape Town')")
        oslo.run("INSERT INTO part VALUES (2, 'of Oslo')")
        spoke.london.run("INSERT INTO part VALUES (3, 'of London')")
        counts = [
            each.run(direction=direction).entries
            for direction in reversed(Direction)
            for each in (spoke, other)
        ]
        assert counts == [1, 1, 2, 2], "each spoke gets the other's and the hub's, and not its own"
        assert [each.run_both()[0].entries for each in (spoke, other)] == [0, 0]
        assert spoke.are_equal()
        assert other.are_equal()
        assert len(oslo.rows("TABLE part")) == 3
    finally:
        oslo.drop_slots()
        oslo.connection.close()
