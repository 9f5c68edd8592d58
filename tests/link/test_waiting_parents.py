"""What waits was deleted by nobody: its children wait with it, whatever their foreign key declares, nothing of it is
adopted."""

from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases.postgresql.decision import Desk
from concord.errors import ConstraintViolated
from concord.policy import Policy
from tests.link.conftest import MakePair
from tests.link.pair import At, Pair
from tests.link.plain_link import carry
from tests.link.test_backfill import behind_capture
from tests.link.test_future_stamps import edit_in_2099, in_a_time_when_it_is_2099
from tests.link.test_quarantine import CHEAP

WAITING = "SELECT DISTINCT table_name, key ->> 0, kind FROM concord.waiting ORDER BY 1, 2"
BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, price int, isbn text UNIQUE)",
    "INSERT INTO book VALUES (7, 7, 'seven')",
)
ACTIONS = {"loan": "CASCADE", "note": "SET NULL", "part": "NO ACTION"}
CHILDREN = [
    f"CREATE TABLE {table} (id int PRIMARY KEY, book int REFERENCES book ON DELETE {action})"
    for table, action in ACTIONS.items()
]


def holding(sites: Pair) -> Pair:
    tables = tuple(table.model_copy(update={"policy": Policy(resolvers=("hold",))}) for table in sites.tables)
    return replace(sites, tables=tables)


def both(sites: Pair, *directions: str) -> None:
    for direction in directions or ("forward", "reverse"):
        carry(sites.job(direction))


def add(sites: Pair, *keys: tuple[int, int]) -> None:
    """Children of every kind, in London."""
    for table in ACTIONS:
        sites.london.run(*(f"INSERT INTO {table} VALUES {key}" for key in keys))


def children(sites: Pair) -> list[set[tuple[object, ...]]]:
    """The children at either site, which are the same of every kind."""
    found = [[tuple(site.rows(f"TABLE {table} ORDER BY 1")) for table in ACTIONS] for site in sites.sites]
    assert all(len(set(kinds)) == 1 for kinds in found), found
    return [set(kinds[0]) for kinds in found]


def test_children_of_a_refused_parent_wait_whatever_is_declared(pair: MakePair) -> None:
    sites = pair(*BOOK, *CHILDREN)
    sites.capetown.run(CHEAP)
    sites.london.run("INSERT INTO book VALUES (1, 900)")
    add(sites, (1, 1))
    both(sites)
    add(sites, (2, 1), (3, 7))
    both(sites)
    assert children(sites) == [{(1, 1), (2, 1), (3, 7)}, {(3, 7)}]
    waiting = {(f"public.{table}", key, "quarantined") for table in ACTIONS for key in ("1", "2")}
    assert set(sites.capetown.rows(WAITING)) == waiting | {("public.book", "1", "quarantined")}
    add(sites, (4, 1))
    with pytest.raises(ConstraintViolated, match=r"public.loan refers by .* public.book that wait \(1\)"):
        carry(sites.job(max_quarantined=0))
    sites.capetown.run("ALTER TABLE book DROP CONSTRAINT cheap")
    both(sites)
    assert sites.equal
    assert sites.capetown.rows(WAITING) == sites.conflicts() == []


def test_a_child_that_refers_to_another_key_of_a_refused_parent_waits(pair: MakePair) -> None:
    """The source says which row it is; and a parent that was deleted in earnest still takes its child along."""
    sites = pair(
        *BOOK, "CREATE TABLE loan (id int PRIMARY KEY, isbn text REFERENCES book (isbn) ON DELETE CASCADE)"
    )
    sites.capetown.run(CHEAP, "DELETE FROM book WHERE id = 7")
    sites.london.run("INSERT INTO loan VALUES (2, 'seven')")
    carry(sites.job())
    (entry,) = sites.conflicts()
    assert (entry["table_name"], entry["key"]) == ("public.loan", ["2"])
    sites.london.run("INSERT INTO book VALUES (1, 900, 'one')", "INSERT INTO loan VALUES (1, 'one')")
    both(sites)
    assert [site.rows("TABLE loan") for site in sites.sites] == [[(1, "one")], []]
    assert len(sites.conflicts()) == 1
    sites.london.run("UPDATE book SET price = 9")
    both(sites, "forward", "forward")
    assert sites.equal
    assert sites.capetown.rows("TABLE loan") == [(1, "one")]


@pytest.mark.parametrize(("choice", "left"), [("source", {(1, 7)}), ("target", set())])
def test_children_of_a_held_parent_wait_until_a_person_decides(
    pair: MakePair, choice: str, left: set[object]
) -> None:
    sites = holding(pair(*BOOK, CHILDREN[0]))
    sites.capetown.run("DELETE FROM book")
    sites.london.run("UPDATE book SET price = 2", "INSERT INTO loan VALUES (1, 7)")
    both(sites)
    assert [site.rows("TABLE loan") for site in sites.sites] == [[(1, 7)], []]
    assert sites.capetown.rows(WAITING) == [
        ("public.book", "7", "held"),
        ("public.loan", "1", "quarantined"),
    ]
    with closing(Desk(sites.job())) as desk:
        (book,) = [row for row in desk.entries(10) if row.held]
        desk.decide(book, choice, "Ada")
    both(sites, "forward", "reverse", "forward")
    assert sites.equal
    assert set(sites.capetown.rows("TABLE loan")) == left
    assert sites.capetown.rows(WAITING) == []


def test_a_parent_that_was_lost_without_a_delete_is_fetched(pair: MakePair) -> None:
    sites = pair(*BOOK, *CHILDREN)
    behind_capture(sites.capetown, "DELETE FROM book", table="book")
    add(sites, (1, 7))
    both(sites)
    assert sites.equal
    assert children(sites)[1] == {(1, 7)}


def test_a_parent_from_the_future_is_not_adopted_for_its_children(pair: MakePair) -> None:
    sites = pair(*BOOK, *CHILDREN)
    edit_in_2099(sites.london, "INSERT INTO book VALUES (1, 1)")
    add(sites, (1, 1))
    both(sites)
    assert children(sites) == [{(1, 1)}, set()]
    assert {key for _, key, _ in sites.capetown.rows(WAITING)} == {"1"}
    assert sites.capetown.value('SELECT max(changed_at) FROM concord."public.book"') == 0
    assert sites.conflicts() == []
    carry(sites.job(target=in_a_time_when_it_is_2099(sites)))
    assert sites.equal
    assert sites.capetown.rows(WAITING) == []


def test_a_stamp_from_the_future_is_not_fetched_with_a_parent_either(pair: MakePair) -> None:
    """The source stamped it after the snapshot of the link: no version that waits tells of it."""
    sites = pair(*BOOK, CHILDREN[2])
    sites.capetown.run("DELETE FROM book")
    sites.london.run("INSERT INTO part VALUES (1, 7)")
    edit = At("constraints", lambda: edit_in_2099(sites.london, "UPDATE book SET price = 8"))
    carry(sites.job(), edit)
    assert edit.reached
    assert sites.capetown.rows("TABLE book") == []
    assert sites.capetown.rows(WAITING) == [("public.part", "1", "quarantined")]
