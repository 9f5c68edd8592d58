"""A child here, its parent deleted there: what gives way is the same in both orders of the links, and nothing is lost.

All scenarios are lived in one run, each in keys of its own, and once with each link first.
"""

from collections.abc import Iterator

import pytest

from embedded.postgres import Server
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.link_without_spark import carry, settle
from tests.given.site import Site
from tests.link.constraints.lived_pair import OVER_CAPTURES, Life, live

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, name text, code text UNIQUE)",
    "CREATE TABLE child (id int PRIMARY KEY, parent bigint NOT NULL, note text)",
    "ALTER TABLE child ALTER parent TYPE int, ADD FOREIGN KEY (parent) REFERENCES parent",
    "CREATE TABLE part (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent ON DELETE CASCADE)",
    "CREATE TABLE link (id int PRIMARY KEY, owner int REFERENCES parent ON DELETE CASCADE, other int)",
    "ALTER TABLE link ADD FOREIGN KEY (other) REFERENCES parent",
    "CREATE TABLE friend (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE SET NULL)",
    "CREATE TABLE by_code (id int PRIMARY KEY, code text REFERENCES parent (code))",
    "CREATE TABLE grandchild (id int PRIMARY KEY, child int REFERENCES child)",
    "CREATE TABLE of_part (id int PRIMARY KEY, part int REFERENCES part)",
    "CREATE TABLE employee (id int PRIMARY KEY, boss int REFERENCES employee)",
    "CREATE TABLE hen (id int PRIMARY KEY, egg int)",
    "CREATE TABLE egg (id int PRIMARY KEY, hen int REFERENCES hen DEFERRABLE INITIALLY DEFERRED)",
    "ALTER TABLE hen ADD FOREIGN KEY (egg) REFERENCES egg DEFERRABLE INITIALLY DEFERRED",
    "CREATE TABLE seat (flight text, number int, PRIMARY KEY (flight, number))",
    "CREATE TABLE ticket (id int PRIMARY KEY, flight text, number int, FOREIGN KEY (flight, number) REFERENCES seat)",
    "CREATE TABLE customer (id int PRIMARY KEY, email text NOT NULL UNIQUE)",
    "CREATE TABLE purchase (id int PRIMARY KEY, customer int REFERENCES customer)",
    "CREATE TABLE pledge (id int PRIMARY KEY, customer int NOT NULL REFERENCES customer)",
    "INSERT INTO parent SELECT n, 'parent ' || n, 'code ' || n FROM generate_series(1, 20) n",
    "INSERT INTO child VALUES (100, 10, 'known'), (140, 14, 'known')",
    "INSERT INTO part VALUES (30, 3), (110, 11)",
    "INSERT INTO employee VALUES (1, NULL), (2, NULL)",
    "BEGIN; INSERT INTO hen VALUES (1, 1); INSERT INTO egg VALUES (1, 1); COMMIT",
    "INSERT INTO seat VALUES ('BA', 1), ('BA', 2)",
)


def happen(london: Site, capetown: Site) -> None:
    """The edits of all scenarios, in turn."""
    for one, other, n in ((london, capetown, 1), (capetown, london, 2)):
        one.run(f"INSERT INTO child VALUES ({n}, {n}, 'added')")
        other.run(f"DELETE FROM parent WHERE id = {n}")
    for one, other, n in ((london, capetown, 3), (capetown, london, 4)):
        one.run(f"INSERT INTO part VALUES ({n}, {n})")
        other.run(f"DELETE FROM parent WHERE id = {n}")
    for one, other, n in ((london, capetown, 5), (capetown, london, 6)):
        one.run(f"INSERT INTO friend VALUES ({n}, {n})")
        other.run(f"DELETE FROM parent WHERE id = {n}")
    london.run("INSERT INTO by_code VALUES (7, 'code 7'), (8, 'code 8')")
    capetown.run("UPDATE parent SET code = 'changed' WHERE id = 7", "DELETE FROM parent WHERE id = 8")
    # a chain of three: what is brought back needs its own parent back
    london.run("INSERT INTO grandchild VALUES (1, 100)")
    capetown.run("DELETE FROM child WHERE id = 100", "DELETE FROM parent WHERE id = 10")
    # a cascade that would have been refused further down
    london.run("INSERT INTO of_part VALUES (1, 110)")
    capetown.run("DELETE FROM parent WHERE id = 11")
    # the parent cannot come back: its code is another's by now
    london.run("INSERT INTO child VALUES (12, 12, 'added')")
    capetown.run("DELETE FROM parent WHERE id = 12", "INSERT INTO parent VALUES (13000, 'heir', 'code 12')")
    # one of its parents takes the child along, and so the other one is needed by nobody
    london.run("INSERT INTO link VALUES (1, 16, 17)")
    capetown.run("DELETE FROM parent WHERE id IN (16, 17)")
    # the child was moved away in time, and the delete stands
    london.run("UPDATE child SET note = 'edited' WHERE id = 140")
    capetown.run("UPDATE child SET parent = 15 WHERE id = 140", "DELETE FROM parent WHERE id = 14")
    london.run("INSERT INTO employee VALUES (10, 1)")
    capetown.run("DELETE FROM employee WHERE id = 1")
    london.run("INSERT INTO egg VALUES (2, 1)")
    capetown.run("BEGIN; DELETE FROM hen; DELETE FROM egg; COMMIT")
    london.run("INSERT INTO ticket VALUES (1, 'BA', 1), (2, 'BA', NULL), (3, NULL, 2)")
    capetown.run("DELETE FROM seat")
    if london.by_log:  # there the row that arrives waits
        return
    # a parent that gives way to another row for a unique value takes its children's references along
    capetown.run(
        "INSERT INTO customer VALUES (1, 'a@x')",
        "INSERT INTO purchase VALUES (1, 1)",
        "INSERT INTO pledge VALUES (1, 1)",
    )
    london.run("INSERT INTO customer VALUES (2, 'a@x')", "INSERT INTO pledge VALUES (2, 2)")


@pytest.fixture(scope="module", params=OVER_CAPTURES)
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "foreign_keys", TABLES, happen)


def test_the_sites_are_equal_and_every_constraint_held_after_every_link(life: Life) -> None:
    assert life.sites.equal
    assert life.unsound == []


def test_a_further_run_writes_nothing_but_its_own_state(life: Life) -> None:
    assert life.quiet == life.control


def test_a_parent_that_is_needed_elsewhere_is_brought_back_whole(life: Life) -> None:
    """F46: the delete would have been refused, had it seen the child."""
    assert life.rows("SELECT * FROM child WHERE id < 3 ORDER BY 1") == [(1, 1, "added"), (2, 2, "added")]
    assert life.rows("SELECT * FROM parent WHERE id < 3 ORDER BY 1") == [
        (1, "parent 1", "code 1"),
        (2, "parent 2", "code 2"),
    ]


def test_the_delete_that_lost_stands_in_the_ledger_once_beside_the_child(life: Life) -> None:
    (entry,) = life.lost("parent", 1)
    assert (entry["type"], entry["loser_site"], entry["winner_site"]) == ("foreign_key", "capetown", "london")
    assert (entry["loser_version"]["deleted"], entry["loser_row"]) == (True, None)
    assert entry["winner_row"] == {"id": "1", "parent": "1", "note": "added"}
    assert entry["reason"] == "child_parent_fkey: public.child refers to the row, which is brought back"
    (entry,) = life.lost("parent", 2)
    assert (entry["loser_site"], entry["winner_site"]) == ("london", "capetown")


def test_a_declared_cascade_takes_the_child_that_it_could_not_see(life: Life) -> None:
    """F35, F36: and keeps it in the ledger; the children that it saw are no conflict."""
    assert life.rows("SELECT id FROM part WHERE id < 100") == []
    assert life.rows("SELECT id FROM parent WHERE id IN (3, 4)") == []
    losers = {entry["key"][0]: entry["loser_row"] for entry in life.lost("part", 3, 4, 30)}
    assert losers == {"3": {"id": "3", "parent": "3"}, "4": {"id": "4", "parent": "4"}}


def test_a_declared_set_null_leaves_the_child_without_its_parent(life: Life) -> None:
    assert life.rows("SELECT id, parent FROM friend ORDER BY 1") == [(5, None), (6, None)]
    assert life.rows("SELECT id FROM parent WHERE id IN (5, 6)") == []
    assert {entry["loser_row"]["parent"] for entry in life.lost("friend", 5, 6)} == {"5", "6"}


def test_a_key_that_is_not_the_replication_key_comes_back_with_its_row_or_is_followed(life: Life) -> None:
    """`test_parents_that_move` has all cases of a parent that is there, with another value."""
    assert life.rows("SELECT id, code FROM parent WHERE id IN (7, 8) ORDER BY 1") == [
        (7, "changed"),
        (8, "code 8"),
    ]
    assert life.rows("SELECT * FROM by_code ORDER BY 1") == [(7, "changed"), (8, "code 8")]
    assert [entry["loser_row"] for entry in life.lost("parent", 7, 8)] == [None]
    assert [entry["loser_row"] for entry in life.lost("by_code", 7)] == [{"id": "7", "code": "code 7"}]


def test_what_is_brought_back_brings_back_what_it_refers_to(life: Life) -> None:
    assert life.rows(
        "SELECT c.note, p.name FROM child c JOIN parent p ON p.id = c.parent WHERE c.id = 100"
    ) == [("known", "parent 10")]
    assert [len(life.lost("child", 100)), len(life.lost("parent", 10))] == [1, 1]


def test_a_cascade_is_undone_as_a_whole_where_a_row_further_down_would_have_refused_it(life: Life) -> None:
    assert life.rows(
        "SELECT p.id, a.id, o.id FROM parent p JOIN part a ON a.parent = p.id JOIN of_part o ON part = a.id"
    ) == [(11, 110, 1)]
    assert [len(life.lost("part", 110)), len(life.lost("parent", 11))] == [1, 1]


def test_no_parent_is_brought_back_for_a_child_that_goes_with_another(life: Life) -> None:
    assert life.rows("SELECT id FROM parent WHERE id IN (16, 17)") == []
    assert life.rows("SELECT id FROM link") == []
    assert [len(life.lost("link", 1)), len(life.lost("parent", 16, 17))] == [1, 0]


def test_where_the_parent_cannot_come_back_the_child_gives_way(life: Life) -> None:
    assert life.rows("SELECT id FROM parent WHERE code = 'code 12'") == [(13000,)]
    assert life.rows("SELECT id FROM child WHERE id = 12") == []
    (entry,) = life.lost("child", 12)
    assert entry["loser_row"] == {"id": "12", "parent": "12", "note": "added"}


def test_a_child_that_was_moved_away_keeps_no_parent(life: Life) -> None:
    """Of two edits of the child the later stands, which refers elsewhere."""
    assert life.rows("SELECT parent FROM child WHERE id = 140") == [(15,)]
    assert life.rows("SELECT id FROM parent WHERE id = 14") == []
    assert life.lost("parent", 14) == []


def test_a_table_that_refers_to_itself(life: Life) -> None:
    assert life.rows("SELECT id, boss FROM employee ORDER BY 1") == [(1, None), (2, None), (10, 1)]


def test_tables_that_refer_to_each_other(life: Life) -> None:
    """F45: what egg 2 needs comes back, and what that needs."""
    assert life.rows("SELECT * FROM hen") == [(1, 1)]
    assert life.rows("SELECT * FROM egg ORDER BY 1") == [(1, 1), (2, 1)]
    assert [len(life.ledger("hen")), len(life.ledger("egg"))] == [1, 1]


def test_a_composite_key_counts_where_all_of_it_is_given(life: Life) -> None:
    assert life.rows("SELECT * FROM seat") == [("BA", 1)]
    assert len(life.rows("SELECT * FROM ticket")) == 3


def test_the_children_of_a_row_that_gave_way_for_a_unique_value_lose_the_reference_or_go(life: Life) -> None:
    if life.sites.london.by_log:
        pytest.skip("no row gives way for a unique value")
    assert life.rows("SELECT id FROM customer") == [(2,)]
    assert life.rows("SELECT * FROM purchase") == [(1, None)]
    assert life.rows("SELECT * FROM pledge") == [(2, 2)]
    kinds = {(entry["table_name"], entry["type"]) for entry in life.ledger("customer", "purchase", "pledge")}
    assert kinds == {
        ("public.customer", "uniqueness"),
        ("public.purchase", "foreign_key"),
        ("public.pledge", "foreign_key"),
    }


def test_every_loser_stands_in_the_ledger_exactly_once(life: Life) -> None:
    entries = [
        (entry["table_name"], tuple(entry["key"]), str(entry["loser_version"]))
        for entry in life.sites.conflicts()
    ]
    assert len(entries) == len(set(entries))
    unique = set() if life.sites.london.by_log else {"uniqueness"}
    kinds = {entry["type"] for entry in life.sites.conflicts()}
    assert kinds == {"foreign_key", "update_update"} | unique


def test_only_the_children_of_what_went_are_looked_at(pair: MakePair) -> None:
    """Not all children, although the key referred to is not the replication key."""
    sites = pair(
        "CREATE TABLE parent (id int PRIMARY KEY, name text, code text UNIQUE)",
        "CREATE TABLE child (id int PRIMARY KEY, code text REFERENCES parent (code))",
        "CREATE INDEX ON child (code)",
        "INSERT INTO parent SELECT n, 'p', 'code ' || n FROM generate_series(1, 3000) n",
        "INSERT INTO child SELECT n, 'code ' || n FROM generate_series(1, 2000) n",
        "ANALYZE",
    )
    touched = "coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)"
    read = f"SELECT {touched} FROM pg_stat_user_tables WHERE relname = 'child'"
    sites.capetown.writes()
    before = sites.capetown.value(read)
    sites.london.run("UPDATE parent SET name = 'new' WHERE id <= 50", "DELETE FROM parent WHERE id = 2500")
    carry(sites.job())
    sites.capetown.writes()
    assert sites.capetown.value(read) - before < 100
    assert sites.equal


def test_a_parent_that_is_edited_while_it_is_fetched_comes_back_as_edited_and_is_no_second_conflict(
    pair: MakePair,
) -> None:
    """The version that is brought back has seen what the source showed of it, newer than the snapshot or not."""
    sites = pair(
        "CREATE TABLE parent (id int PRIMARY KEY, name text)",
        "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent)",
        "INSERT INTO parent VALUES (1, 'old')",
    )
    sites.london.run("INSERT INTO child VALUES (1, 1)")
    sites.capetown.run("DELETE FROM parent")
    edit = At("constraints", lambda: sites.london.run("UPDATE parent SET name = 'edited'"))
    carry(sites.job(), edit)
    assert edit.reached
    for direction in ("reverse", "forward", "reverse"):
        carry(sites.job(direction))
    assert sites.equal
    assert sites.london.rows("TABLE parent") == [(1, "edited")]
    assert [entry["type"] for entry in sites.conflicts()] == ["foreign_key"]


def test_beside_a_row_that_the_site_refuses_everything_else_is_mended_as_ever(pair: MakePair) -> None:
    """Only what cannot be mended waits."""
    sites = pair(
        "CREATE TABLE person (id int PRIMARY KEY, email text UNIQUE, age int)",
        "CREATE TABLE pet (id int PRIMARY KEY, person int NOT NULL REFERENCES person)",
        "INSERT INTO person VALUES (5, 'five', 5)",
    )
    sites.capetown.run(
        "ALTER TABLE person ADD CHECK (age < 100)",
        "INSERT INTO person VALUES (1, 'x', 1)",
        "DELETE FROM person WHERE id = 5",
    )
    sites.london.run("INSERT INTO person VALUES (2, 'x', 2), (3, 'y', 300)", "INSERT INTO pet VALUES (1, 5)")
    carry(sites.job())
    assert sites.capetown.rows("SELECT table_name, key ->> 0 FROM concord.waiting") == [
        ("public.person", "3")
    ]
    assert sites.capetown.rows("SELECT id, email FROM person ORDER BY 1") == [
        (1, None),
        (2, "x"),
        (5, "five"),
    ]
    assert sorted(entry["type"] for entry in sites.conflicts()) == ["foreign_key", "uniqueness"]
    sites.london.run("UPDATE person SET age = 30 WHERE id = 3")
    settle(sites)
    assert sites.equal
    assert sites.capetown.value("SELECT count(*) FROM concord.waiting") == 0
    assert len(sites.conflicts()) == 2
