"""A foreign key refers to a unique column that is not the replication key. One site changes the value, the other adds
children of the old one. The children follow, in both orders of the links, and what they were is kept.

All scenarios are lived in one run, each in tables of its own, and once with each link first.
"""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from embedded.postgres import Server
from tests.given.own_equality import OWN_EQUALITY
from tests.given.site import Site
from tests.link.constraints.lived_pair import OVER_CAPTURES, Life, live


def family(name: str, reference: str) -> tuple[str, ...]:
    """A parent with the value 10, and its child 1."""
    return (
        f"CREATE TABLE {name} (id int PRIMARY KEY, u int UNIQUE, note text)",
        f"CREATE TABLE of_{name} (id int PRIMARY KEY, u int NOT NULL REFERENCES {name} (u) {reference})",
        f"INSERT INTO {name} VALUES (1, 10)",
        f"INSERT INTO of_{name} VALUES (1, 10)",
    )


TABLES = (
    *family("cascade", "ON UPDATE CASCADE"),
    *family("deferred", "DEFERRABLE INITIALLY DEFERRED"),
    *family("twice", "ON UPDATE CASCADE ON DELETE CASCADE"),
    *family("emptied", ""),
    *family("used", "ON UPDATE CASCADE"),
    "CREATE TABLE by_key (u int REFERENCES cascade (u) ON UPDATE CASCADE, n int, note text, PRIMARY KEY (u, n))",
    "INSERT INTO by_key VALUES (10, 1)",
    "CREATE TABLE middle (id int PRIMARY KEY, u int UNIQUE REFERENCES cascade (u) ON UPDATE CASCADE)",
    "CREATE TABLE leaf (id int PRIMARY KEY, u int REFERENCES middle (u) ON UPDATE CASCADE)",
    "CREATE TABLE one_each (id int PRIMARY KEY, u int UNIQUE DEFERRABLE REFERENCES used (u) ON UPDATE CASCADE)",
    "INSERT INTO one_each VALUES (1, 10)",
    "CREATE TABLE staff (id int PRIMARY KEY, code text UNIQUE, boss text REFERENCES staff (code) ON UPDATE CASCADE)",
    "INSERT INTO staff VALUES (1, 'old', NULL)",
    "CREATE TABLE numbers (id int PRIMARY KEY, u int UNIQUE)",
    "INSERT INTO numbers VALUES (1, 10)",
    "CREATE TABLE computed (id int PRIMARY KEY, v int, u int GENERATED ALWAYS AS (v) STORED REFERENCES numbers (u))",
    "CREATE TABLE drawn (u int GENERATED ALWAYS AS IDENTITY (START 10) PRIMARY KEY REFERENCES numbers (u))",
    "CREATE TABLE unrelated (id int PRIMARY KEY)",
)


def happen(london: Site, capetown: Site) -> None:
    """The edits of all scenarios, each later than the one before it."""
    london.run("UPDATE cascade SET u = 15")
    capetown.run(
        "INSERT INTO of_cascade VALUES (2, 10)",
        "INSERT INTO by_key VALUES (10, 2, 'added')",
        "INSERT INTO middle VALUES (1, 10)",
        "INSERT INTO leaf VALUES (1, 10)",
    )
    london.run("BEGIN; UPDATE deferred SET u = 15; UPDATE of_deferred SET u = 15; COMMIT")
    capetown.run("INSERT INTO of_deferred VALUES (2, 10)")
    capetown.run("INSERT INTO of_twice VALUES (2, 10)")
    london.run(
        "INSERT INTO of_twice VALUES (3, 10)",
        "UPDATE twice SET u = 15",
        "INSERT INTO of_twice VALUES (4, 15)",
    )
    capetown.run("UPDATE twice SET u = 20", "INSERT INTO of_twice VALUES (5, 20)")
    london.run("DELETE FROM of_emptied", "UPDATE emptied SET u = NULL")
    capetown.run("INSERT INTO of_emptied VALUES (2, 10)")
    london.run("UPDATE used SET u = 15")
    capetown.run("DELETE FROM one_each", "INSERT INTO one_each VALUES (2, 10)")
    london.run("UPDATE one_each SET id = 3")
    london.run("UPDATE staff SET code = 'new'")
    capetown.run("INSERT INTO staff VALUES (2, 'second', 'old')")
    london.run("UPDATE numbers SET u = 15")
    capetown.run("INSERT INTO computed VALUES (1, 10)", "INSERT INTO drawn DEFAULT VALUES")
    london.run("INSERT INTO unrelated VALUES (1)")
    capetown.run("INSERT INTO unrelated VALUES (2)")


@pytest.fixture(scope="module", params=OVER_CAPTURES)
def life(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    yield from live(request, server_with_logins, "parents_that_move", TABLES, happen)


def test_the_sites_are_equal_and_every_constraint_held_after_every_link(life: Life) -> None:
    assert life.sites.equal
    assert life.unsound == []


def test_no_row_waits_and_a_further_run_writes_nothing_but_its_own_state(life: Life) -> None:
    assert [site.value("SELECT count(*) FROM concord.waiting") for site in life.sites.sites] == [0, 0]
    assert life.rows("SELECT id FROM unrelated ORDER BY 1") == [(1,), (2,)]
    assert life.quiet == life.control


@pytest.mark.parametrize("name", ["cascade", "deferred"])
def test_a_child_follows_its_parent_whatever_is_declared(life: Life, name: str) -> None:
    assert life.rows(f"SELECT id, u FROM {name}") == [(1, 15)]
    assert life.rows(f"SELECT id, u FROM of_{name} ORDER BY 1") == [(1, 15), (2, 15)]


def test_the_child_as_it_was_is_in_the_conflict_log_once_against_its_parent(life: Life) -> None:
    (entry,) = life.ledger("of_deferred")
    assert (entry["type"], entry["key"], entry["loser_row"]["u"]) == ("foreign_key", ["2"], "10")
    assert (entry["loser_site"], entry["winner_site"]) == ("capetown", "london")
    assert entry["winner_row"]["u"] == "15"
    assert entry["reason"] == "of_deferred_u_fkey: public.deferred has another value now; u follows it"
    assert life.ledger("deferred") == []


def test_where_both_sites_move_the_value_all_children_follow_the_winner(life: Life) -> None:
    assert life.rows("SELECT id, u FROM twice") == [(1, 20)]
    assert life.rows("SELECT id, u FROM of_twice ORDER BY 1") == [(n, 20) for n in range(1, 6)]
    assert {entry["key"][0] for entry in life.ledger("of_twice")} >= {"3", "4"}


def test_a_value_of_the_childs_own_key_follows_too(life: Life) -> None:
    assert life.rows("SELECT u, n, note FROM by_key ORDER BY 2") == [(15, 1, None), (15, 2, "added")]
    assert [entry["key"] for entry in life.ledger("by_key")] == [["2", "10"]]


def test_children_of_a_child_that_follows_follow_it(life: Life) -> None:
    assert life.rows("SELECT id, u FROM middle") == life.rows("SELECT id, u FROM leaf") == [(1, 15)]
    assert life.rows("SELECT id, code, boss FROM staff ORDER BY 1") == [
        (1, "new", None),
        (2, "second", "new"),
    ]


def test_a_parent_that_was_left_without_a_value_gets_it_back(life: Life) -> None:
    """There is nothing to follow."""
    assert life.rows("SELECT id, u FROM emptied") == [(1, 10)]
    assert life.rows("SELECT id, u FROM of_emptied") == [(2, 10)]
    assert len(life.ledger("emptied")) == 1


def test_a_child_that_cannot_follow_gives_the_reference_up(life: Life) -> None:
    """Another child has the value, which is unique among them."""
    assert sorted(u or 0 for _, u in life.rows("SELECT id, u FROM one_each ORDER BY 1")) == [0, 15]


@pytest.mark.parametrize("name", ["computed", "drawn"])
def test_a_child_whose_reference_no_update_can_set_is_deleted_and_kept(life: Life, name: str) -> None:
    """The link ended in PostgreSQL's error: the column can only be updated to DEFAULT."""
    assert life.rows(f"SELECT u FROM {name}") == []
    (entry,) = life.ledger(name)
    assert (entry["type"], entry["loser_site"]) == ("foreign_key", "capetown")


#: A user's edits: k and n are numbers of rows, v and w values.
STEPS = (
    "UPDATE parent SET u = '{v}' WHERE id = {k}",
    "BEGIN; SET CONSTRAINTS ALL DEFERRED; UPDATE later SET u = '{w}' WHERE u = '{v}';"
    " UPDATE parent SET u = '{w}' WHERE u = '{v}'; COMMIT",
    "UPDATE parent SET note = '{v}' WHERE id = {k}",
    "INSERT INTO parent VALUES ({k}, '{v}')",
    "INSERT INTO child VALUES ({n}, '{v}')",
    "INSERT INTO child VALUES ({n}, '{w}')",
    "INSERT INTO later VALUES ({n}, '{v}')",
    "UPDATE child SET u = '{v}' WHERE id = {n}",
    "DELETE FROM parent WHERE id = {k}",
    "INSERT INTO unrelated VALUES ({n})",
)
steps = st.tuples(
    st.booleans(),
    st.sampled_from(STEPS),
    *(st.integers(0, 2) for _ in "kn"),
    *(st.sampled_from(["a", "A", "b", "B", "c"]) for _ in "vw"),
)
lives = st.tuples(st.lists(steps, max_size=8), st.lists(steps, max_size=8))

_ranges = count(1)


@pytest.fixture(scope="module", params=["forward"])
def lived(request: pytest.FixtureRequest, server_with_logins: Server) -> Iterator[Life]:
    tables = (
        *OWN_EQUALITY,
        "CREATE TABLE parent (id int PRIMARY KEY, u ext.citext UNIQUE, note text)",
        "CREATE TABLE child (id int PRIMARY KEY, u ext.citext NOT NULL REFERENCES parent (u) ON UPDATE CASCADE)",
        "CREATE TABLE later (id int PRIMARY KEY, u ext.citext REFERENCES parent (u) DEFERRABLE)",
        "CREATE TABLE unrelated (id int PRIMARY KEY)",
    )
    yield from live(request, server_with_logins, "moving_histories", tables, lambda *_: None)


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(lives, min_size=8, max_size=15),
    st.sampled_from([("forward", "reverse"), ("reverse", "forward")]),
)
def test_whatever_values_move_and_children_come_every_foreign_key_holds_and_the_sites_agree(
    lived: Life,
    histories: list[
        tuple[list[tuple[bool, str, int, int, str, str]], list[tuple[bool, str, int, int, str, str]]]
    ],
    order: tuple[str, str],
) -> None:
    """All histories of an example in one run, each in numbers and values of its own."""
    starts = [10 * next(_ranges) for _ in histories]
    for turn in (0, 1):
        for start, history in zip(starts, histories, strict=True):
            for at_london, statement, k, n, v, w in history[turn]:
                _edit(lived.sites.sites[at_london], statement, start, (k, n), (v, w))
        lived.run(order[turn])
    for direction in order[::-1] + order * 2:
        lived.run(direction)
    assert lived.unsound == []
    assert [
        site.rows("SELECT table_name, key, reason FROM concord.waiting") for site in lived.sites.sites
    ] == [[], []]
    assert lived.sites.equal
    assert [lived.run(direction) for direction in order] == [0, 0]


def _edit(site: Site, statement: str, start: int, numbers: tuple[int, int], values: tuple[str, str]) -> None:
    """An edit that the site's own constraints refuse does not happen."""
    (k, n), (v, w) = (start + each for each in numbers), (f"{start} {value}" for value in values)
    try:
        site.run(statement.format(k=k, n=n, v=v, w=w))
    except psycopg.Error:
        site.connection.rollback()
