"""Keys and values of types that a link between two writers refuses, and a replication carries (F42, T17)."""

import pytest

from tests.given.compared_replication import compare, replayed_beside, table, when
from tests.given.replicated_accounts import Make

PAIR = "CREATE TYPE pair AS (a int, b text)"


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("interval", "1 day", "24:00:00"),
        ("numeric[]", "{1.0}", "{1.00}"),
        ("jsonb", "1.0", "1.00"),
        ("float8", "-0", "0"),
        ("numrange", "[1.0,2)", "[1.00,2)"),
    ],
)
def test_equal_keys_that_read_differently_are_told_apart(
    replicated: Make, kind: str, one: str, other: str, capture: str
) -> None:
    """F42: both texts are under way, and no row counts twice."""
    sites = replicated((f"CREATE TABLE t (k {kind} PRIMARY KEY, v text)",), "public.t", capture=capture)
    sites.london.run(f"INSERT INTO t VALUES ('{one}', 'x')")
    sites.initialize()
    renamed = replayed_beside(sites, f"UPDATE t SET k = '{other}'", "UPDATE t SET v = 'y'")
    found = table(compare(sites, when("target_cut", renamed)), "public.t")
    assert (found.source_rows, found.target_rows, found.in_flight, found.differences) == (1, 1, 2, 0)
    removed = replayed_beside(sites, f"UPDATE t SET k = '{one}'", "DELETE FROM t")
    found = table(compare(sites, when("target_cut", removed)), "public.t")
    assert (found.source_rows, found.target_rows, found.in_flight, found.differences) == (1, 0, 1, 0)
    assert compare(sites).found == 0


def test_a_composite_value_with_a_null_in_it_is_compared(replicated: Make) -> None:
    """T17: SQL calls such a value neither NULL nor NOT NULL."""
    sites = replicated((PAIR, "CREATE TABLE t (id int PRIMARY KEY, v pair)"), "public.t")
    sites.london.run("INSERT INTO t VALUES (1, '(2,)'), (2, '(,)'), (3, NULL), (4, '(2,)')")
    sites.initialize()
    assert compare(sites).found == 0
    sites.capetown.run(
        "UPDATE t SET v = '(3,)' WHERE id = 1",
        "UPDATE t SET v = NULL WHERE id = 2",
        "UPDATE t SET v = '(,)' WHERE id = 3",
    )
    found = compare(sites).differences
    assert [(each.key, each.source_row, each.target_row) for each in found] == [
        (("1",), {"id": "1", "v": "(2,)"}, {"id": "1", "v": "(3,)"}),
        (("2",), {"id": "2", "v": "(,)"}, {"id": "2", "v": None}),
        (("3",), {"id": "3", "v": None}, {"id": "3", "v": "(,)"}),
    ]


def test_a_composite_key_with_a_null_in_it_is_a_key(replicated: Make) -> None:
    """T17: its row is there."""
    sites = replicated((PAIR, "CREATE TABLE t (k pair PRIMARY KEY, v text)"), "public.t")
    sites.london.run("INSERT INTO t VALUES ('(2,)', 'x'), ('(3,)', 'y')")
    sites.initialize()
    sites.capetown.run("UPDATE t SET v = 'z' WHERE v = 'x'", "DELETE FROM t WHERE v = 'y'")
    found = compare(sites)
    assert [(each.key, each.kind.value) for each in found.differences] == [
        (("(2,)",), "content"),
        (("(3,)",), "only_source"),
    ]
    meanwhile = replayed_beside(sites, "UPDATE t SET k = '(4,)' WHERE v = 'x'")
    found = compare(sites, when("target_cut", meanwhile))
    assert (table(found, "public.t").in_flight, table(found, "public.t").only_source) == (2, 1)
