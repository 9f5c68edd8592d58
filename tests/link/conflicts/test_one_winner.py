"""Every conflict ends with one winner on both sites and the loser's whole row in the log."""

import pytest

from tests.given.at_step import At
from tests.given.edits_in_order import BOOK, edit
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("judged")]

SEVEN = "SELECT title, price::text FROM book WHERE id = 7"


def update(title: str) -> str:
    return f"UPDATE book SET title = '{title}' WHERE id = 7"


DELETE = "DELETE FROM book WHERE id = 7"


def image(title: str, key: int = 7, price: str | None = "1.50") -> dict[str, str | None]:
    return {"id": str(key), "title": title, "price": price}


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def the_conflict(sites: Pair) -> dict[str, object]:
    """The words of the one conflict of both logs, its versions checked against each other."""
    (found,) = sites.conflicts()
    for side in ("winner", "loser"):
        assert found[f"{side}_version"]["origin"] == f"{found[f'{side}_site']}#1"
        assert found[f"{side}_version"]["deleted"] == (found[f"{side}_row"] is None)
    assert found["winner_version"]["changed_at"] > found["loser_version"]["changed_at"]
    assert (found["table_name"], found["key"]) == ("public.book", ["7"])
    return {name: found[name] for name in ("type", "winner_site", "loser_site", "winner_row", "loser_row")}


def test_of_two_updates_the_later_wins(sites: Pair) -> None:
    edit((sites.london, update("london")), (sites.capetown, update("capetown")))
    sites.settle()
    assert sites.equal
    assert sites.london.rows(SEVEN) == [("capetown", "1.50")]
    assert the_conflict(sites) == {
        "type": "update_update",
        "winner_site": "capetown",
        "loser_site": "london",
        "winner_row": image("capetown"),
        "loser_row": image("london"),
    }


def test_a_delete_later_than_an_update_wins_and_the_updated_row_is_kept(sites: Pair) -> None:
    edit((sites.capetown, update("capetown")), (sites.london, DELETE))
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows(SEVEN) == []
    assert the_conflict(sites) == {
        "type": "delete_update",
        "winner_site": "london",
        "loser_site": "capetown",
        "winner_row": None,
        "loser_row": image("capetown"),
    }


def test_an_update_later_than_a_delete_brings_the_row_back(sites: Pair) -> None:
    edit((sites.london, DELETE), (sites.capetown, update("capetown")))
    sites.settle()
    assert sites.equal
    assert sites.london.rows(SEVEN) == [("capetown", "1.50")]
    assert the_conflict(sites) == {
        "type": "delete_update",
        "winner_site": "capetown",
        "loser_site": "london",
        "winner_row": image("capetown"),
        "loser_row": None,
    }


def test_of_two_inserts_of_one_key_the_later_wins(sites: Pair) -> None:
    edit(
        (sites.london, "INSERT INTO book VALUES (7000, 'london', 2)"),
        (sites.capetown, "INSERT INTO book VALUES (7000, 'capetown', NULL)"),
    )
    sites.settle()
    assert sites.equal
    (conflict,) = sites.conflicts()
    assert conflict["type"] == "insert_insert"
    assert (conflict["winner_row"], conflict["loser_row"]) == (
        image("capetown", 7000, None),
        image("london", 7000, "2"),
    )


def test_two_deletes_of_one_row_are_no_conflict(sites: Pair) -> None:
    edit((sites.london, DELETE), (sites.capetown, DELETE))
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []


def test_an_insert_over_a_row_that_only_the_target_has_is_a_conflict(sites: Pair) -> None:
    """Rule 8: the empty vector of an unshadowed row is included in every other, and yet its content differs."""
    sites.capetown.as_applier(
        "SET LOCAL concord.applying = 'on'", "INSERT INTO public.book VALUES (7000, 'unseen')"
    )
    sites.london.run("INSERT INTO book VALUES (7000, 'london')")
    sites.settle()
    assert sites.equal
    (conflict,) = sites.conflicts()
    assert (conflict["type"], conflict["winner_site"], conflict["loser_site"]) == (
        "insert_insert",
        "london",
        "capetown",
    )
    assert conflict["loser_row"] == image("unseen", 7000, None)


def test_edits_at_both_sites_one_after_the_other_are_no_conflict(sites: Pair) -> None:
    sites.london.run(update("first"))
    sites.run("forward")
    sites.capetown.run(update("second"))
    sites.run("reverse")
    sites.london.run(DELETE)
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []
    assert sites.capetown.rows(SEVEN) == []


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_equal_timestamps_are_decided_alike_at_both_sites(sites: Pair, first: str) -> None:
    edit((sites.london, update("london")), (sites.capetown, update("capetown")))
    for site in sites.sites:
        site.run(
            f"""UPDATE concord."public.book" SET changed_at = 1700000000000000,
                vector = '{{"{site.name}#1": [1700000000000000, 0]}}'"""
        )
    sites.settle(first=first)
    assert sites.equal
    assert sites.capetown.rows(SEVEN) == [("london", "1.50")], "by name, since no priority is configured"
    (conflict,) = sites.conflicts()
    assert conflict["reason"] == "tie broken by site priority and name"


def test_a_sites_priority_comes_before_its_name(sites: Pair) -> None:
    edit((sites.london, update("london")), (sites.capetown, update("capetown")))
    for site in sites.sites:
        site.run(
            f"""UPDATE concord."public.book" SET changed_at = 1700000000000000,
                vector = '{{"{site.name}#1": [1700000000000000, 0]}}'"""
        )
    for direction in ("forward", "reverse"):
        sites.run(direction, priorities={"capetown": 5, "london": 1})
    assert sites.equal
    assert sites.london.rows(SEVEN) == [("capetown", "1.50")]


def many_conflicts(sites: Pair) -> None:
    london, capetown = sites.sites
    edit(
        (london, "UPDATE book SET title = 'london' WHERE id <= 6"),
        (capetown, "UPDATE book SET title = 'capetown' WHERE id BETWEEN 4 AND 9"),
        (capetown, "DELETE FROM book WHERE id IN (1, 5)"),
        (london, "DELETE FROM book WHERE id IN (2, 8)"),
        (london, "INSERT INTO book VALUES (50, 'london'), (51, 'london')"),
        (capetown, "INSERT INTO book VALUES (51, 'capetown'), (52, 'capetown')"),
    )


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_the_order_of_the_links_does_not_change_the_outcome(sites: Pair, first: str) -> None:
    many_conflicts(sites)
    reports = sites.settle(first=first)
    assert sites.equal
    assert sites.london.rows("SELECT id, title FROM book WHERE id < 10 OR id > 20 ORDER BY id") == [
        *((3, "london"), (4, "capetown"), (6, "capetown"), (7, "capetown"), (9, "capetown")),
        *((50, "london"), (51, "capetown"), (52, "capetown")),
    ]
    assert sorted((each["key"][0], each["winner_site"]) for each in sites.conflicts()) == [
        *(("1", "capetown"), ("4", "capetown"), ("5", "capetown")),
        *(("51", "capetown"), ("6", "capetown"), ("8", "london")),
    ]
    assert sum(report.total("conflicts") for report in reports) == 6
    assert reports[-1].total("acquired") == reports[-2].total("acquired") == 0


def test_the_reports_count_each_outcome(sites: Pair) -> None:
    many_conflicts(sites)
    forward, reverse = carried(sites.run("forward")), carried(sites.run("reverse"))
    # london changed 1-6, 2 and 8 deleted, 50, 51; capetown won 1, 4, 5, 6, 51 and lost 8
    assert (forward.acquired, forward.applied, forward.lost, forward.conflicts) == (9, 4, 5, 6)
    # capetown changed 4-9, 1, 51, 52; 8 was overwritten, and is announced again with both histories
    assert (reverse.acquired, reverse.applied, reverse.converged) == (9, 8, 1)
    assert reverse.conflicts == 0


@pytest.mark.parametrize(
    ("statement", "expected", "conflicts"),
    [
        (update("capetown"), [("capetown", "1.50")], 1),
        (DELETE, [], 1),
        ("UPDATE book SET title = 'other' WHERE id = 8", [("london", "1.50")], 0),
    ],
    ids=["the same row updated", "the same row deleted", "another row"],
)
def test_an_edit_of_the_target_after_detection_is_judged_again_under_lock(
    sites: Pair, statement: str, expected: list[tuple[str, str]], conflicts: int
) -> None:
    sites.london.run(update("london"))
    sites.run("forward", At("lock", lambda: sites.capetown.run(statement)))
    assert sites.capetown.rows(SEVEN) == expected, "no row returns to an older version"
    sites.settle()
    assert sites.equal
    assert len(sites.conflicts()) == conflicts
