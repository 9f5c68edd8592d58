"""Both sites write, and each replays the other's transactions (S2-06 to S2-09)."""

import random
from collections.abc import Callable

import pytest

from concord.jobs.link import Direction
from concord.messages.errors import HistoryLost, NotInitialized
from tests.given.replicated_sites import Replicated
from tests.transactional.test_one_way import Make

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
    """S2-09: what was replayed is known by its first statement, the level of this very replication."""
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
