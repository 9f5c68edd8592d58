"""Conflicts that users settle by hand: the next run goes on, and nothing is lost (docs/both-ways.md)."""

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import Aside, SetAside
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError, ConstraintViolated, EntryConflict
from concord.transactional.both_ways import replicate_both_ways
from concord.transactional.going_on import both_going_on
from tests.given.contests import OTHER, decided, gone_on, stopped_at
from tests.given.replicated_accounts import Make
from tests.given.replicated_sites import Replicated
from tests.given.site import Site

STOCK = (
    "CREATE TABLE part (id int PRIMARY KEY, name text, code text UNIQUE)",
    "CREATE TABLE stock (depot text PRIMARY KEY, part int REFERENCES part, pieces int)",
)


@pytest.fixture
def sites(replicated: Make) -> Replicated:
    made = replicated(STOCK, "public.part", "public.stock", updates="both")
    made.london.run(
        "INSERT INTO part SELECT n, 'part ' || n, 'code ' || n FROM generate_series(1, 9) n",
        "INSERT INTO stock VALUES ('d', 4, 1)",
    )
    made.initialize_both_ways()
    return made


def ends(sites: Replicated, direction: Direction) -> tuple[Site, Site]:
    """The site whose log is read in this direction, and the one that replays it."""
    return sites.sites if direction is Direction.FORWARD else (sites.capetown, sites.london)


def still_stopped(sites: Replicated) -> None:
    """Each direction, whichever is run first."""
    for direction in (*Direction, Direction.FORWARD):
        with pytest.raises(EntryConflict):
            gone_on(sites, direction)


def settled(sites: Replicated, first: Direction) -> None:
    """Both directions go on, nothing is left to do, no row differs, and none was lost."""
    stopped = []
    for direction in (first, OTHER[first], first):
        try:
            gone_on(sites, direction)
        except EntryConflict:  # until the other one has gone on
            stopped.append(direction)
    assert stopped in ([], [first])
    assert [gone_on(sites, direction).entries for direction in Direction] == [0, 0]
    assert sites.are_equal()
    assert [site.conflicts() for site in sites.sites] == [[], []]


HANDS = {
    "both rows made equal": "UPDATE part SET name = 'theirs' WHERE id = 5",
    "the row put back as it was": "UPDATE part SET name = 'part 5' WHERE id = 5",
}


@pytest.mark.parametrize("hand", HANDS)
@pytest.mark.parametrize("first", list(Direction))
@pytest.mark.parametrize("side", list(Direction))
def test_a_row_is_repaired_at_either_site(
    sites: Replicated, side: Direction, first: Direction, hand: str
) -> None:
    theirs, mine = ends(sites, side)
    for site, name in ((theirs, "theirs"), (mine, "mine")):
        site.run(
            f"BEGIN; UPDATE part SET name = '{name}' WHERE id = 5; INSERT INTO stock VALUES ('{name}', 1); COMMIT"
        )
    still_stopped(sites)
    mine.run(HANDS[hand])
    settled(sites, first)
    assert mine.rows("SELECT name FROM part WHERE id = 5") == [("theirs",)]
    assert mine.value("SELECT count(*) FROM stock") == 3


@pytest.fixture
def orphaned(sites: Replicated, side: Direction) -> Replicated:
    """One site's users have deleted part 3, and the other site's users use it."""
    deletes, uses = ends(sites, side)
    deletes.run("DELETE FROM part WHERE id = 3")
    uses.run("INSERT INTO stock VALUES ('e', 3, 1)")
    return sites


@pytest.mark.parametrize("first", list(Direction))
@pytest.mark.parametrize("side", list(Direction))
def test_the_parent_is_put_back(orphaned: Replicated, side: Direction, first: Direction) -> None:
    deletes, uses = ends(orphaned, side)
    still_stopped(orphaned)
    deletes.run("INSERT INTO part VALUES (3, 'part 3', 'code 3')")
    settled(orphaned, first)
    assert uses.rows("SELECT depot FROM stock JOIN part ON part.id = stock.part WHERE part = 3") == [("e",)]


@pytest.mark.parametrize(
    "hand", ["DELETE FROM stock WHERE depot = 'e'", "UPDATE stock SET part = 1 WHERE depot = 'e'"]
)
@pytest.mark.parametrize("first", list(Direction))
@pytest.mark.parametrize("side", list(Direction))
def test_the_child_is_deleted_or_given_another_parent(
    orphaned: Replicated, side: Direction, first: Direction, hand: str
) -> None:
    _, uses = ends(orphaned, side)
    still_stopped(orphaned)
    uses.run(hand)
    settled(orphaned, first)
    assert uses.rows("SELECT FROM part WHERE id = 3") == []


@pytest.mark.parametrize("wins", ["the parent's site", "the child's site"])
@pytest.mark.parametrize("side", list(Direction))
def test_a_child_and_its_deleted_parent_are_decided_for_either_site(
    orphaned: Replicated, side: Direction, wins: str
) -> None:
    """Nothing is written that would leave an orphan; then the other transaction is the one to decide about."""
    deletes, uses = ends(orphaned, side)
    back, before = OTHER[side], (orphaned.rows("part"), orphaned.rows("stock"))
    if wins == "the parent's site":
        with pytest.raises(
            ConstraintViolated, match=r"public\.stock: a row refers to a row of public\.part that"
        ):
            decided(orphaned, stopped_at(orphaned, side), deletes.name, side)
        assert (orphaned.rows("part"), orphaned.rows("stock")) == before
        assert decided(orphaned, stopped_at(orphaned, back), deletes.name, back) == 1
        assert [each["key"] for each in uses.conflicts()] == [["e"]]
    else:
        with pytest.raises(ConstraintViolated, match=r"public\.stock: a row of .* that is not here"):
            decided(orphaned, stopped_at(orphaned, back), uses.name, back)
        assert (orphaned.rows("part"), orphaned.rows("stock")) == before
        assert decided(orphaned, stopped_at(orphaned, side), uses.name, side) == 1
        assert [each["key"] for each in deletes.conflicts()] == [["3"]]
    for direction in (*Direction, *Direction):
        gone_on(orphaned, direction)
    assert orphaned.are_equal()
    assert len(uses.rows("SELECT FROM part WHERE id = 3")) == (wins == "the child's site")


@pytest.mark.parametrize("side", list(Direction))
def test_a_transaction_that_leaves_an_orphan_is_not_replayed_in_part(
    orphaned: Replicated, side: Direction
) -> None:
    """None of its operations fails alone; `entry skip` leaves out all of them."""
    still_stopped(orphaned)
    before = orphaned.rows("part"), orphaned.rows("stock")
    for direction in Direction:
        aside = SetAside(
            number=stopped_at(orphaned, direction), how=Aside.QUARANTINE, reason="odd", by="a person"
        )
        with pytest.raises(ConcordError, match="a parent that the other site has deleted"):
            orphaned.run(direction=direction, set_aside=aside)
    assert (orphaned.rows("part"), orphaned.rows("stock")) == before


def test_a_parent_or_a_child_of_the_same_transaction_comes_along(sites: Replicated) -> None:
    """Alone, the contested row would leave an orphan."""
    sites.london.run(
        "BEGIN; INSERT INTO part VALUES (50, 'new', NULL); UPDATE stock SET part = 50 WHERE depot = 'd'; COMMIT",
    )
    sites.capetown.run("UPDATE stock SET pieces = 9 WHERE depot = 'd'")
    assert decided(sites, stopped_at(sites, Direction.FORWARD), "london", Direction.FORWARD) == 1
    for direction in Direction:
        gone_on(sites, direction)
    sites.london.run("BEGIN; DELETE FROM stock WHERE depot = 'd'; DELETE FROM part WHERE id = 50; COMMIT")
    sites.capetown.run("UPDATE part SET name = 'mine' WHERE id = 50")
    assert decided(sites, stopped_at(sites, Direction.FORWARD), "london", Direction.FORWARD) == 1
    for direction in Direction:
        gone_on(sites, direction)
    assert sites.are_equal()
    assert [(each["table_name"], each["key"]) for each in sites.capetown.conflicts()] == [
        ("public.part", ["50"]),
        ("public.stock", ["d"]),
    ]


@pytest.mark.parametrize("first", list(Direction))
@pytest.mark.parametrize("side", list(Direction))
def test_one_unique_value_in_two_rows_is_given_up_by_either(
    sites: Replicated, side: Direction, first: Direction
) -> None:
    theirs, mine = ends(sites, side)
    theirs.run("INSERT INTO part VALUES (20, 'theirs', 'new')")
    mine.run("INSERT INTO part VALUES (30, 'mine', 'new')")
    still_stopped(sites)
    mine.run("UPDATE part SET code = 'newer' WHERE id = 30")
    settled(sites, first)
    assert mine.rows("SELECT id, code FROM part WHERE id >= 20 ORDER BY 1") == [(20, "new"), (30, "newer")]


def test_both_directions_at_once_go_on_past_what_was_settled(sites: Replicated) -> None:
    sites.london.run("UPDATE part SET name = 'theirs' WHERE id = 5")
    sites.capetown.run(
        "UPDATE part SET name = 'mine' WHERE id = 5", "UPDATE part SET name = 'theirs' WHERE id = 5"
    )
    jobs = [sites.job(way, run_for=1.0, linger=1.0) for way in Direction]
    jobs = [each.model_copy(update={"epoch": jobs[-1].epoch}) for each in jobs]
    outcomes = both_going_on(jobs, dialect, lambda: replicate_both_ways(jobs, dialect))
    assert all(isinstance(each, ReplicationReport) for each in outcomes), outcomes
    assert sites.are_equal()
