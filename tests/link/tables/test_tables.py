"""Tables of every shape: composite keys, odd names, references to themselves, long values."""

import pytest

from concord.databases.contract.quoting import qualified, quote
from concord.databases.postgresql.rows import acquire
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark


def both_ways(sites: Pair) -> None:
    """Two rounds; then both sites are equal and nothing was a conflict."""
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []


def test_a_row_deleted_and_inserted_again_between_two_runs_is_there_with_its_new_content(
    pair: MakePair,
) -> None:
    # F30
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text)", "INSERT INTO book VALUES (1, 'old')")
    sites.london.run("DELETE FROM book", "INSERT INTO book VALUES (1, 'new')")
    assert carried(sites.run()).applied == 1
    both_ways(sites)
    assert sites.capetown.rows("TABLE book") == [(1, "new")]


def test_a_row_inserted_and_deleted_between_two_runs_leaves_nothing(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, title text)")
    sites.london.run("INSERT INTO book VALUES (1, 'brief')", "DELETE FROM book")
    both_ways(sites)
    assert sites.capetown.rows("TABLE book") == []


def test_more_tables_than_one_statement_counts_are_all_counted(
    pair: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquire, "PER_STATEMENT", 2)
    names = ("a", "b", "c", "d", "e")
    sites = pair(*(f"CREATE TABLE {name} (id int PRIMARY KEY)" for name in names))
    sites.london.run(
        *(f"INSERT INTO {name} SELECT generate_series(1, {rows})" for rows, name in enumerate(names))
    )
    report = sites.run("forward")
    assert {table.table: table.applied for table in report.tables} == {
        f"public.{name}": rows for rows, name in enumerate(names)
    }
    both_ways(sites)


def test_a_composite_key_is_one_key(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE seat (flight text, day date, number int, passenger text, PRIMARY KEY (number, flight, day))",
        "INSERT INTO seat SELECT 'BA' || f, '2026-01-01', n FROM generate_series(1, 3) f, generate_series(1, 3) n",
    )
    sites.london.run(
        "UPDATE seat SET passenger = 'Ada' WHERE (flight, number) = ('BA1', 2)",
        "DELETE FROM seat WHERE (flight, number) = ('BA2', 1)",
        "UPDATE seat SET number = 30 WHERE (flight, number) = ('BA3', 3)",
    )
    sites.capetown.run("UPDATE seat SET passenger = 'Grace' WHERE (flight, number) = ('BA2', 2)")
    both_ways(sites)
    assert sites.london.rows("SELECT flight, number, passenger FROM seat ORDER BY 1, 2") == [
        *(("BA1", 1, None), ("BA1", 2, "Ada"), ("BA1", 3, None), ("BA2", 2, "Grace"), ("BA2", 3, None)),
        *(("BA3", 1, None), ("BA3", 2, None), ("BA3", 30, None)),
    ]


def test_a_table_of_nothing_but_its_key(pair: MakePair) -> None:
    sites = pair("CREATE TABLE tag (name text PRIMARY KEY)", "INSERT INTO tag VALUES ('a'), ('b')")
    sites.london.run("INSERT INTO tag VALUES ('c')", "DELETE FROM tag WHERE name = 'a'")
    both_ways(sites)
    assert sites.capetown.rows("TABLE tag ORDER BY 1") == [("b",), ("c",)]


def test_parents_and_children_of_one_run_arrive_and_go_together(pair: MakePair) -> None:
    # F44: a_child stands before its parent in every list by name
    sites = pair(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE a_child (id int PRIMARY KEY, parent int NOT NULL REFERENCES parent)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO a_child VALUES (1, 1), (2, 2)",
    )
    sites.london.run(
        "INSERT INTO parent VALUES (3)",
        "INSERT INTO a_child VALUES (3, 3)",
        "DELETE FROM a_child WHERE id = 1",
        "DELETE FROM parent WHERE id = 1",
        "UPDATE a_child SET parent = 3 WHERE id = 2",
        "DELETE FROM parent WHERE id = 2",
    )
    both_ways(sites)
    assert sites.capetown.rows("TABLE a_child ORDER BY 1") == [(2, 3), (3, 3)]


def test_a_table_that_refers_to_itself_arrives_in_any_order_of_its_rows(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE employee (id int PRIMARY KEY, boss int REFERENCES employee DEFERRABLE)",
        "INSERT INTO employee VALUES (1, NULL), (2, 1), (3, 2)",
    )
    sites.london.run(
        "INSERT INTO employee VALUES (9, NULL), (5, 9), (4, 5)",
        "UPDATE employee SET boss = 4 WHERE id = 1",
        "BEGIN; SET CONSTRAINTS ALL DEFERRED; DELETE FROM employee WHERE id = 2;"
        " UPDATE employee SET boss = 3 WHERE id = 3; COMMIT",
    )
    both_ways(sites)
    assert sites.capetown.rows("TABLE employee ORDER BY 1") == [(1, 4), (3, 3), (4, 5), (5, 9), (9, None)]


def test_a_value_of_a_million_characters_arrives_whole_and_in_the_conflict_log_too(pair: MakePair) -> None:
    sites = pair("CREATE TABLE page (id int PRIMARY KEY, body text)", "INSERT INTO page VALUES (1), (2)")
    long = "SELECT string_agg(md5(n::text || '{}'), '') || 'é€𝄞' FROM generate_series(1, 31250) n"
    sites.london.run(f"UPDATE page SET body = ({long.format('london')})")
    sites.capetown.run(f"UPDATE page SET body = ({long.format('capetown')}) WHERE id = 2")
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows("SELECT id, length(body) FROM page ORDER BY id") == [
        (1, 1_000_003),
        (2, 1_000_003),
    ]
    (conflict,) = sites.conflicts()
    assert len(conflict["loser_row"]["body"]) == 1_000_003


LONGEST = "n" * 63
#: The names that an application may give a thing, and that must not be taken for SQL, a pattern or a format.
NAMES = [
    'ab "cd',
    "two  words ",
    "MixedCase",
    LONGEST,
    "é" * 31,
    "50%s",
    "%(name)s",
    "{x}",
    "select",
    "user",
    "it's",
    "semi;--",
    "back\\slash",
    "dotted.name",
    "$1",
]
#: Names that Concord uses itself, in its tables or in its statements.
OWN_NAMES = [
    *("origin", "changed_at", "vector", "position", "verdict", "attempt", "s_origin", "n", "c0", "s"),
    *("here", "now_us", "tricky$$; SELECT"),
    *("new", "old", "found", "tg_op", "tg_relid", "rebounds"),
]


@pytest.mark.parametrize("name", [*NAMES, *OWN_NAMES])
def test_schemas_tables_and_columns_may_have_any_name(pair: MakePair, name: str) -> None:
    table = qualified(name, name)
    key, other = quote(name), quote(f"{name[:20]} 2")
    sites = pair(
        f"CREATE SCHEMA {quote(name)}",
        f"CREATE TABLE {table} ({key} text PRIMARY KEY, {other} text)",
        f"INSERT INTO {table} VALUES ('a', 'old'), ('b', 'old'), ('c', 'old')",
    )
    sites.london.run(
        f"UPDATE {table} SET {other} = 'london' WHERE {key} IN ('a', 'b')",
        f"UPDATE {table} SET {key} = 'moved' WHERE {key} = 'c'",
    )
    sites.capetown.run(f"UPDATE {table} SET {other} = 'capetown' WHERE {key} = 'a'")
    sites.run("forward")
    sites.run("reverse")
    assert sites.equal
    assert sites.london.rows(f"TABLE {table} ORDER BY 1") == [
        ("a", "capetown"),
        ("b", "london"),
        ("moved", "old"),
    ]
    (conflict,) = sites.conflicts()
    assert conflict["table_name"] == f"{name}.{name}"
    assert conflict["loser_row"] == {name: "a", f"{name[:20]} 2": "london"}
