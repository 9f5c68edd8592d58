"""A decision is about the rows of an entry that users of both sites changed, and about no others (S2-21)."""

import pytest

from concord.jobs.link import Direction
from concord.messages.errors import ConstraintViolated, EntryConflict, ParametersRefused
from tests.given.contests import OTHER, decided, gone_on, settled, stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

PARTS = ("CREATE TABLE part (id int PRIMARY KEY, name text, price numeric, code text UNIQUE)",)
MANY = 600  #: operations of an entry that is replayed by set


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(PARTS, "public.part", updates="both")
    made.london.run(f"INSERT INTO part SELECT n, 'part ' || n, n, n FROM generate_series(1, {MANY}) n")
    made.initialize_both_ways()
    return made


def ends(sites: Replicated, direction: Direction) -> tuple[Site, Site]:
    """The site whose log is read in this direction, and the one that replays it."""
    return sites.sites if direction is Direction.FORWARD else (sites.capetown, sites.london)


@pytest.mark.parametrize("wins", ["its publisher", "its subscriber"])
@pytest.mark.parametrize("direction", list(Direction))
def test_one_row_of_a_large_entry_is_decided_the_others_are_replayed_and_it_alone_is_logged(
    sites: Replicated, direction: Direction, wins: str
) -> None:
    source, target = ends(sites, direction)
    source.run("UPDATE part SET price = price + 1000")
    target.run("UPDATE part SET name = 'mine' WHERE id = 5")
    number = stopped_at(sites, direction)
    won, lost = (source, target) if wins == "its publisher" else (target, source)
    assert decided(sites, number, won.name, direction) == 1
    settled(sites)
    assert source.value("SELECT count(*) FROM part WHERE id <> 5 AND price > 1000") == MANY - 1
    assert source.rows("SELECT name, price FROM part WHERE id = 5") == (
        [("part 5", 1005)] if won is source else [("mine", 5)]
    )
    assert [(each["key"], each["winner_site"]) for each in lost.conflicts()] == [(["5"], won.name)]
    assert won.conflicts() == []


def test_each_contested_row_of_an_entry_may_have_another_winner(sites: Replicated) -> None:
    """`entry apply --operation`, as `entry show` counts them."""
    sites.london.run("UPDATE part SET price = 0 WHERE id IN (1, 5, 6)")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id IN (5, 6)")
    number = stopped_at(sites, Direction.FORWARD)
    with pytest.raises(ParametersRefused, match="which are 2, 3"):
        decided(sites, number, "london", Direction.FORWARD, operations=(1,))
    assert decided(sites, number, "london", Direction.FORWARD, operations=(2,)) == 1
    assert stopped_at(sites, Direction.FORWARD) == number, "the other one is still contested"
    assert decided(sites, number, "capetown", Direction.FORWARD, operations=(3,)) == 1
    settled(sites)
    assert sites.london.rows("SELECT id, name, price FROM part WHERE id IN (1, 5, 6) ORDER BY 1") == [
        (1, "part 1", 0),
        (5, "part 5", 0),
        (6, "mine", 6),
    ]


def test_a_row_that_was_put_back_as_it_was_is_not_decided_and_loses_nothing(sites: Replicated) -> None:
    """It is settled by hand: once the way back has replayed the other site's row, the next run goes on."""
    sites.london.run("UPDATE part SET price = 0 WHERE id IN (5, 6)")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id IN (5, 6)")
    number = stopped_at(sites, Direction.REVERSE)
    sites.london.run("UPDATE part SET price = id WHERE id = 6")
    assert decided(sites, number, "capetown", Direction.REVERSE) == 1
    with pytest.raises(EntryConflict, match="operation 2 of 2"):
        gone_on(sites, Direction.FORWARD)
    for direction in OTHER:
        gone_on(sites, OTHER[direction])
    settled(sites)
    assert sites.london.rows("SELECT id, name, price FROM part WHERE id IN (5, 6) ORDER BY 1") == [
        (5, "mine", 5),
        (6, "mine", 6),
    ]
    assert [each["key"] for each in sites.london.conflicts()] == [["5"]]
    assert sites.capetown.conflicts() == []


def test_an_entry_behind_the_one_that_stops_is_not_decided(sites: Replicated) -> None:
    """Its rows may be others by then."""
    for site in sites.sites:
        site.run(f"UPDATE part SET name = '{site.name}' WHERE id = 5")
    first = stopped_at(sites, Direction.FORWARD)
    sites.london.run("UPDATE part SET price = 7 WHERE id = 7")
    with pytest.raises(ParametersRefused, match=f"entry {first} of .* waits before"):
        decided(sites, first + 1000, "london", Direction.FORWARD)
    decided(sites, first, "london", Direction.FORWARD)
    settled(sites)


@pytest.mark.parametrize("direction", list(Direction))
def test_one_unique_value_in_two_rows_is_decided_for_either(sites: Replicated, direction: Direction) -> None:
    """For the other site's row at once, and for the own one by that other row's transaction."""
    source, target = ends(sites, direction)
    for number, id_ in enumerate((700, 800)):
        source.run(f"INSERT INTO part VALUES ({id_}, 'of {source.name}', 1, 'code {number}')")
        target.run(f"INSERT INTO part VALUES ({id_ + 1}, 'of {target.name}', 1, 'code {number}')")
    assert decided(sites, stopped_at(sites, direction), target.name, direction) == 1
    with pytest.raises(ConstraintViolated, match="decide about its own transaction"):
        decided(sites, stopped_at(sites, direction), source.name, direction)
    back = OTHER[direction]
    assert decided(sites, stopped_at(sites, back), source.name, back) == 1
    settled(sites)
    assert source.rows("SELECT id, name FROM part WHERE id >= 700 ORDER BY 1") == [
        (701, f"of {target.name}"),
        (800, f"of {source.name}"),
    ]
    assert [each["key"] for each in source.conflicts()] == [["700"]]
    assert [each["key"] for each in target.conflicts()] == [["801"]]
