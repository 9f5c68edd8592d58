"""Nobody deleted a row that waits. Its children wait with it, whatever their foreign key declares, and nothing of
it is adopted. No other row takes a value from a row that it has not replaced yet."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.messages.errors import ConstraintViolated
from concord.rules.policy import Policy
from tests.given.at_step import At
from tests.given.behind_capture import behind_the_back
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry
from tests.given.two_sites import Pair
from tests.link.waiting.library import CHEAP
from tests.link.waiting.year_2099 import edit_in_2099, in_a_time_when_it_is_2099

WAITING = "SELECT DISTINCT table_name, key ->> 0, kind FROM concord.waiting ORDER BY 1, 2"
BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, price int, isbn text UNIQUE)",
    "INSERT INTO book VALUES (7, 7, 'seven')",
)
ACTIONS = {"loan": "CASCADE", "note": "SET NULL"}
CHILDREN = [
    f"CREATE TABLE {table} (id int PRIMARY KEY, book int REFERENCES book ON DELETE {action})"
    for table, action in ACTIONS.items()
]
PART = "CREATE TABLE part (id int PRIMARY KEY, book int REFERENCES book)"
SEATS = [
    statement.format(kind)
    for kind in ("seat", "bench")
    for statement in (
        "CREATE TABLE {0} (id int PRIMARY KEY, no int NOT NULL UNIQUE, price int)",
        "INSERT INTO {0} VALUES (1, 1, 1), (2, 2, 2)",
    )
] + ["ALTER TABLE bench DROP CONSTRAINT bench_no_key, ADD UNIQUE (no) DEFERRABLE"]


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
    sites.capetown.run("UPDATE concord.waiting SET structure = 'altered ' || structure")  # not tried again
    add(sites, (2, 1), (3, 7))
    both(sites)
    sites.capetown.run("UPDATE concord.waiting SET structure = replace(structure, 'altered ', '')")
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


@pytest.mark.parametrize(("choice", "left"), [("source", {(1, 7), (2, 7)}), ("target", set())])
def test_children_of_a_held_parent_wait_until_a_person_decides(
    pair: MakePair, choice: str, left: set[object]
) -> None:
    sites = holding(pair(*BOOK, CHILDREN[0]))
    sites.capetown.run("DELETE FROM book")
    sites.london.run("UPDATE book SET price = 2", "INSERT INTO loan VALUES (1, 7)")
    both(sites)
    sites.london.run("INSERT INTO loan VALUES (2, 7)")
    both(sites)
    assert [site.rows("TABLE loan") for site in sites.sites] == [[(1, 7), (2, 7)], []]
    assert sites.capetown.rows(WAITING) == [
        ("public.book", "7", "held"),
        ("public.loan", "1", "quarantined"),
        ("public.loan", "2", "quarantined"),
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
    behind_the_back(sites.capetown, "DELETE FROM book")
    add(sites, (1, 7))
    both(sites)
    assert sites.equal
    assert children(sites)[1] == {(1, 7)}


def test_a_parent_that_comes_back_is_stamped_later_than_what_its_source_has_done_since(
    pair: MakePair,
) -> None:
    """Both versions are London's: the deleted one that Cape Town has, and the live one, by a clock that is ahead."""
    sites = pair(*BOOK, PART)
    sites.london.run("DELETE FROM book")
    carry(sites.job())
    ahead = time.time_ns() // 1_000 + 30_000_000
    sites.london.run(
        f"UPDATE concord.site SET stamp_floor = {ahead}",
        "INSERT INTO book VALUES (7, 8, 'seven')",
        "INSERT INTO part VALUES (1, 7)",
    )
    carry(sites.job(chosen=("public.part",)))
    assert sites.capetown.rows("TABLE book") == [(7, 8, "seven")]
    ((origin, stamp, vector),) = sites.capetown.rows(
        'SELECT origin, changed_at, vector FROM concord."public.book"'
    )
    assert origin == "capetown#1"
    assert ahead < vector["london#1"][0] < stamp
    both(sites)
    assert sites.equal


def test_a_parent_from_the_future_is_not_adopted_for_its_children(pair: MakePair) -> None:
    sites = pair(*BOOK, PART)
    edit_in_2099(sites.london, "INSERT INTO book VALUES (1, 1)")
    sites.london.run("INSERT INTO part VALUES (1, 1)")
    both(sites)
    assert [site.rows("TABLE part") for site in sites.sites] == [[(1, 1)], []]
    assert [key for _, key, _ in sites.capetown.rows(WAITING)] == ["1", "1"]
    assert sites.capetown.value('SELECT max(changed_at) FROM concord."public.book"') == 0
    assert sites.conflicts() == []
    carry(sites.job(target=in_a_time_when_it_is_2099(sites)))
    assert sites.equal
    assert sites.capetown.rows(WAITING) == []


def test_a_stamp_from_the_future_is_not_fetched_with_a_parent_either(pair: MakePair) -> None:
    """The source stamped it after the snapshot of the link: no version that waits tells of it."""
    sites = pair(*BOOK, PART)
    sites.capetown.run("DELETE FROM book")
    sites.london.run("INSERT INTO part VALUES (1, 7)")
    edit = At("constraints", lambda: edit_in_2099(sites.london, "UPDATE book SET price = 8"))
    carry(sites.job(), edit)
    assert edit.reached
    assert sites.capetown.rows("TABLE book") == []
    assert sites.capetown.rows(WAITING) == [("public.part", "1", "quarantined")]


def refused(sites: Pair, table: str) -> None:
    sites.capetown.run(f"ALTER TABLE {table} ADD CHECK (price < 100)")
    sites.london.run(f"UPDATE {table} SET no = 100, price = 500 WHERE id = 1")


def from_the_future(sites: Pair, table: str) -> None:
    edit_in_2099(sites.london, f"UPDATE {table} SET no = 100 WHERE id = 1")


def held(sites: Pair, table: str) -> None:
    sites.london.run(f"UPDATE {table} SET no = 100 WHERE id = 1")
    sites.capetown.run(f"UPDATE {table} SET price = 5 WHERE id = 1")


@pytest.mark.parametrize("wait", [refused, from_the_future, held])
def test_a_value_that_a_waiting_row_gives_up_is_not_taken_from_it(
    pair: MakePair, wait: Callable[[Pair, str], None]
) -> None:
    """No two users ever used one value: the row that takes it waits too, and neither is in the ledger."""
    sites = pair(*SEATS)
    sites = holding(sites) if wait is held else sites
    for table in ("seat", "bench"):
        wait(sites, table)
        sites.london.run(f"UPDATE {table} SET no = 1 WHERE id = 2")
    both(sites, "forward", "reverse", "forward")
    for table in ("seat", "bench"):
        here, there = (site.rows(f"SELECT id, no FROM {table} ORDER BY 1") for site in sites.sites)
        assert (here, there) == ([(1, 100), (2, 1)], [(1, 1), (2, 2)])
    assert [key for _, key, _ in sites.capetown.rows(WAITING)] == ["1", "2"] * 2
    assert sites.conflicts() == []


def test_a_value_that_a_row_has_waited_to_give_up_is_not_taken_from_it_later(pair: MakePair) -> None:
    sites = pair(*SEATS)
    for table in ("seat", "bench"):
        from_the_future(sites, table)
    carry(sites.job())
    sites.london.run("UPDATE seat SET no = 1 WHERE id = 2", "UPDATE bench SET no = 1 WHERE id = 2")
    both(sites)
    assert sites.capetown.rows("SELECT id, no FROM seat ORDER BY 1") == [(1, 1), (2, 2)]
    carry(sites.job(target=in_a_time_when_it_is_2099(sites)))
    assert sites.equal
    assert sites.capetown.rows(WAITING) == sites.conflicts() == []
