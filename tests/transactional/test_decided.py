"""A conflict of both sites' users, which a person decides: one site's rows stand (S2-21, S2-24 to S2-26)."""

from collections.abc import Callable

import pytest

from concord.jobs.link import Direction
from concord.messages.errors import ParametersRefused
from embedded.postgres import Server
from tests.conftest import Database
from tests.given.at_step import At
from tests.given.contests import OTHER, decided, settled, stopped_at
from tests.given.fixtures import site_on
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Rows

PARTS = ("CREATE TABLE part (id int PRIMARY KEY, name text, price numeric, code text UNIQUE)",)
TABLE = "public.part"


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(PARTS, TABLE, updates="both")
    made.london.run("INSERT INTO part SELECT n, 'part ' || n, n FROM generate_series(1, 20) n")
    made.initialize_both_ways()
    return made


CONTESTS = {
    "two updates": (
        "UPDATE part SET price = 50 WHERE id = 5",
        "UPDATE part SET name = 'mine' WHERE id = 5",
    ),
    "update and delete": ("UPDATE part SET price = 50 WHERE id = 5", "DELETE FROM part WHERE id = 5"),
    "delete and update": ("DELETE FROM part WHERE id = 5", "UPDATE part SET price = 50 WHERE id = 5"),
    "two inserts": ("INSERT INTO part VALUES (30, 'one')", "INSERT INTO part VALUES (30, 'other')"),
    "two keys": ("UPDATE part SET id = 40 WHERE id = 5", "UPDATE part SET id = 41 WHERE id = 5"),
    "again and again": (
        "UPDATE part SET price = 50 WHERE id = 5; UPDATE part SET id = 60 WHERE id = 5;"
        " INSERT INTO part VALUES (5, 'anew')",
        "UPDATE part SET name = 'mine' WHERE id = 5; DELETE FROM part WHERE id = 5; INSERT INTO part VALUES (5, 'x');"
        " UPDATE part SET id = 5, price = 9 WHERE id = 5",
    ),
}


#: Each contest is decided for each site, and in each direction every second time.
WAYS = [
    (contest, list(Direction)[(place + turn) % 2], winner)
    for place, contest in enumerate(CONTESTS)
    for turn, winner in enumerate(["london", "capetown"])
]


@pytest.mark.parametrize(("contest", "direction", "winner"), WAYS)
def test_the_winners_rows_stand_at_both_sites_and_the_losers_in_the_conflict_log(
    sites: Replicated, contest: str, direction: Direction, winner: str
) -> None:
    """All else that users wrote is replayed, and so is all that they write later."""
    for site, statement, row in zip(sites.sites, CONTESTS[contest], (1, 2), strict=True):
        site.run(f"UPDATE part SET price = 100 WHERE id = {row}", *statement.split(";"))
    number = stopped_at(sites, direction)
    stopped_at(sites, OTHER[direction])
    won, lost = (sites.london, sites.capetown) if winner == "london" else (sites.capetown, sites.london)
    contested = "SELECT * FROM part WHERE id IN (5, 30) ORDER BY id"
    stands, given = won.rows(contested), lost.rows(contested)
    gave_way = decided(sites, number, winner, direction)
    assert bool(gave_way) == (contest != "two keys"), "of two keys for one row both rows stand"
    assert lost.rows(contested) == stands
    for site in sites.sites:
        site.run(f"UPDATE part SET price = price + 1 WHERE id = {3 if site is won else 4}")
    settled(sites)
    assert sites.london.rows("SELECT price FROM part WHERE id IN (1, 2)") == [(100,), (100,)]
    _kept(lost.conflicts(), given, stands, winner)


def _kept(log: list[dict[str, object]], given: Rows, stands: Rows, winner: str) -> None:
    told = {(each["resolver"], each["winner_site"]) for each in log}
    assert told <= {("person", winner)}
    losers = [each["loser_row"] for each in log]
    for row in given:
        if row not in stands:
            assert any(isinstance(each, dict) and each["name"] == row[1] for each in losers), (row, losers)


@pytest.mark.parametrize("winner", ["london", "capetown"])
@pytest.mark.parametrize("direction", list(Direction))
def test_killed_between_the_commits_of_both_sites_it_is_repeated_and_loses_nothing(
    sites: Replicated, direction: Direction, winner: str
) -> None:
    sites.london.run("UPDATE part SET price = 50 WHERE id = 5")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id = 5")
    number = stopped_at(sites, direction)

    def kill() -> None:
        raise Killed

    with pytest.raises(Killed):
        decided(sites, number, winner, direction, At("decide", kill))
    assert stopped_at(sites, direction) == number, "the entry still waits for the decision"
    sites.london.run("UPDATE part SET price = price + 1 WHERE id = 5")
    sites.capetown.run("UPDATE part SET name = name || '!' WHERE id = 5")
    changed = {site.name: site.rows("SELECT * FROM part WHERE id = 5") for site in sites.sites}
    decided(sites, number, winner, direction)
    settled(sites)
    assert sites.london.rows("SELECT * FROM part WHERE id = 5") == changed[winner]
    log = [each for site in sites.sites for each in site.conflicts()]
    [loser] = [row for name, [row] in changed.items() if name != winner]
    assert any(each["loser_row"] and each["loser_row"]["name"] == loser[1] for each in log)


def test_a_decision_may_be_changed_until_it_is_replayed(sites: Replicated) -> None:
    sites.london.run("UPDATE part SET price = 50 WHERE id = 5")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id = 5")
    number = stopped_at(sites, Direction.FORWARD)
    assert decided(sites, number, "london", Direction.FORWARD) == 1
    assert decided(sites, number, "capetown", Direction.FORWARD) == 0, "both have London's row by now"
    settled(sites)
    assert sites.capetown.rows("SELECT name, price FROM part WHERE id = 5") == [("part 5", 50)]


def test_what_is_passed_over_is_counted_and_forgotten_once_the_replay_is_beyond_it(sites: Replicated) -> None:
    sites.london.run("UPDATE part SET price = 50 WHERE id = 5")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id = 5")
    decided(sites, stopped_at(sites, Direction.FORWARD), "london", Direction.FORWARD)
    sites.london.run("UPDATE part SET price = 51 WHERE id = 5")
    forward, reverse = (each.tables[0] for each in sites.run_both())
    assert (forward.decided, forward.updated) == (1, 1), "what was written after the decision is replayed"
    assert (reverse.decided, reverse.updated) == (1, 0)
    sites.run_both()
    assert [site.value("SELECT decided FROM concord.replay") for site in sites.sites] == [None, None]
    assert sites.are_equal()
    sites.capetown.run("UPDATE part SET price = 52 WHERE id = 5")
    sites.london.run("UPDATE part SET price = 53 WHERE id = 5")
    stopped_at(sites, Direction.FORWARD)


def test_an_entry_that_empties_a_table_and_one_that_does_not_wait_are_refused(sites: Replicated) -> None:
    sites.london.run("TRUNCATE part")
    number = stopped_at(sites, Direction.FORWARD)
    with pytest.raises(ParametersRefused, match="empties a table"):
        decided(sites, number, "london", Direction.FORWARD)
    with pytest.raises(ParametersRefused, match="no entry 7 waits"):
        decided(sites, 7, "london", Direction.FORWARD)
    assert len(sites.capetown.rows("TABLE part")) == 20


def test_a_hubs_other_spoke_gets_the_row_that_stands(
    replicated: Make, server_with_logins: Server, database: Callable[[], Database]
) -> None:
    """S2-26: Cape Town's row stands at London, and travels to Oslo."""
    spoke = replicated(PARTS, TABLE, updates="both")
    oslo = site_on(server_with_logins, "capetown", database().name)
    oslo.run(*PARTS)
    other = Replicated(spoke.london, oslo, spoke.tables, f"{spoke.name}2", {"updates": "both"})
    other.provision()
    try:
        spoke.london.run("INSERT INTO part VALUES (5, 'part 5', 5)")
        for each in (spoke, other):
            each.initialize_both_ways()
        spoke.london.run("UPDATE part SET price = 50 WHERE id = 5")
        spoke.capetown.run("UPDATE part SET name = 'mine' WHERE id = 5")
        decided(spoke, stopped_at(spoke, Direction.FORWARD), "capetown", Direction.FORWARD)
        settled(spoke)
        settled(other)
        assert oslo.rows("SELECT name, price FROM part") == [("mine", 5)]
    finally:
        oslo.drop_slots()
        oslo.connection.close()
