"""A held conflict: both rows stay as they are until a person decides, and then every site follows."""

from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.jobs.waiting import Choice, WaitingRow
from concord.messages.errors import DecisionRefused
from concord.rules.policy import Policy
from tests.given.comparison import compared, kinds
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, price numeric)",
    "INSERT INTO book SELECT n, 'book ' || n, n FROM generate_series(1, 20) n",
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return holding(pair(*BOOK))


def holding(made: Pair) -> Pair:
    """The same pair, where every conflict waits for a person."""
    tables = tuple(table.model_copy(update={"policy": Policy(resolvers=("hold",))}) for table in made.tables)
    return replace(made, tables=tables)


def conflicting(sites: Pair) -> None:
    """Book 3 is edited at both sites, book 4 deleted in London and edited in Cape Town; 5 is no conflict."""
    sites.london.run(
        "UPDATE book SET title = 'ours' WHERE id = 3",
        "DELETE FROM book WHERE id = 4",
        "UPDATE book SET title = 'plain' WHERE id = 5",
    )
    sites.capetown.run("UPDATE book SET title = 'theirs' WHERE id IN (3, 4)")


def titles(site: Site) -> dict[int, str]:
    return dict(site.rows("SELECT id, title FROM book WHERE id BETWEEN 3 AND 5"))


def held(sites: Pair, direction: str = "forward") -> dict[int, WaitingRow]:
    with closing(Desk(sites.job(direction))) as desk:
        return {int(row.key[0]): row for row in desk.entries(10)}


def decide(sites: Pair, key: int, choice: Choice, direction: str = "forward") -> None:
    with closing(Desk(sites.job(direction))) as desk:
        desk.decide(held(sites, direction)[key], choice, "Ada")


def test_held_rows_stay_untouched_at_both_sites_and_wait_at_both(sites: Pair) -> None:
    conflicting(sites)
    forward, reverse = sites.run(), sites.run("reverse")
    counts = [
        carried(forward).held,
        carried(forward).applied,
        carried(reverse).held,
        carried(reverse).applied,
    ]
    assert counts == [2, 1, 2, 0]
    for _ in range(2):
        assert titles(sites.london) == {3: "ours", 5: "plain"}
        assert titles(sites.capetown) == {3: "theirs", 4: "theirs", 5: "plain"}
        assert sites.conflicts() == []
        assert {key: row.conflict_type for key, row in held(sites).items()} == {
            3: "update_update",
            4: "delete_update",
        }
        assert {key: row.conflict_type for key, row in held(sites, "reverse").items()} == {
            3: "update_update",
            4: "update_delete",
        }
        assert {row.kind for row in (*held(sites).values(), *held(sites, "reverse").values())} == {"held"}
        settle(sites)
    assert kinds(compared(sites)) == {("3",): "content", ("4",): "only_target"}


def is_newer_than_both(site: Site) -> None:
    """A decision is a version of the site where it was taken."""
    query = 'SELECT origin, changed_at, vector FROM concord."public.book" WHERE id IN (3, 4)'
    for origin, changed_at, vector in site.rows(query):
        assert origin == f"{site.name}#1"
        assert vector.keys() == {"london#1", "capetown#1"}
        assert vector[origin] == max(vector.values()) == [changed_at, 0]


@pytest.mark.parametrize(
    ("direction", "choice", "three", "four", "loser"),
    [
        ("forward", "source", "ours", None, "capetown"),
        ("forward", "target", "theirs", "theirs", "london"),
        ("reverse", "source", "theirs", "theirs", "london"),
        ("forward", {"title": "agreed"}, "agreed", "agreed", "london"),
    ],
)
def test_a_decision_is_followed_by_every_site_and_logged_once(
    sites: Pair, direction: str, choice: Choice, three: str, four: str | None, loser: str
) -> None:
    conflicting(sites)
    settle(sites)
    decide(sites, 3, choice, direction)
    decide(sites, 4, choice, direction)
    is_newer_than_both(sites.capetown if direction == "forward" else sites.london)
    settle(sites)
    expected = {3: three, 5: "plain"} | ({4: four} if four else {})
    assert titles(sites.london) == titles(sites.capetown) == expected
    assert sites.equal
    assert held(sites) == held(sites, "reverse") == {}
    log = sites.conflicts()
    assert {(each["key"][0], each["resolver"], each["loser_site"]) for each in log} == {
        ("3", "person", loser),
        ("4", "person", loser),
    }
    assert len(log) == 2
    assert log[0]["reason"].startswith("Ada decided: ")
    assert carry(sites.job()) == carry(sites.job("reverse")) == {}


def test_later_edits_of_a_held_row_are_held_too_and_the_newest_waits(sites: Pair) -> None:
    conflicting(sites)
    settle(sites)
    sites.london.run("UPDATE book SET price = 33 WHERE id = 3")
    sites.capetown.run("UPDATE book SET price = 333 WHERE id = 3")
    before = held(sites)[3]
    assert (before.present_row or {})["price"] == "333"
    settle(sites)
    after = held(sites)[3]
    assert (after.incoming_row or {})["price"] == "33"
    assert titles(sites.capetown)[3] == "theirs"
    with (
        closing(Desk(sites.job())) as desk,
        pytest.raises(DecisionRefused, match="one of the rows was changed"),
    ):
        desk.decide(before, "source", "Ada")
    decide(sites, 3, "source")
    settle(sites)
    assert sites.capetown.rows("SELECT title, price::text FROM book WHERE id = 3") == [("ours", "33")]
    assert 3 not in held(sites) | held(sites, "reverse")


def test_what_is_held_is_found_behind_whatever_was_refused_before(sites: Pair) -> None:
    sites.capetown.run("ALTER TABLE book ADD CONSTRAINT cheap CHECK (price < 100)")
    sites.london.run("UPDATE book SET price = 500 WHERE id > 10")
    carry(sites.job())
    conflicting(sites)
    carry(sites.job())
    with closing(Desk(sites.job())) as desk:
        assert {row.kind for row in desk.entries(5)} == {"quarantined"}
        assert [row.key for row in desk.entries(5, held=True)] == [["3"], ["4"]]
    again = carry(sites.job())["public.book"]
    assert (again.retried, again.quarantined, again.held) == (10, 10, 0)


def test_two_people_who_decide_otherwise_at_the_same_time_have_a_conflict_that_is_held(sites: Pair) -> None:
    conflicting(sites)
    settle(sites)
    decide(sites, 3, "source")
    decide(sites, 3, "source", "reverse")
    settle(sites)
    assert titles(sites.london)[3] == "theirs"
    assert titles(sites.capetown)[3] == "ours"
    decide(sites, 3, "target")
    settle(sites)
    assert titles(sites.london)[3] == titles(sites.capetown)[3] == "ours"
