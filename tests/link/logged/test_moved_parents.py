"""A repair of a foreign key changes rows of which a log reports the edits: children follow a moved parent. An edit that
is not registered yet is neither overwritten nor logged under an older version."""

from collections.abc import Callable

import psycopg
import pytest

from concord.databases.postgresql.rows import repetition
from concord.jobs.site import Capture
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.goes_on import goes_on
from tests.given.link_without_spark import carry
from tests.given.site import Site
from tests.given.two_sites import Pair

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]

TABLES = (
    "CREATE TABLE parent (id int PRIMARY KEY, code int UNIQUE, note text)",
    "CREATE TABLE child (id int PRIMARY KEY, code int REFERENCES parent (code) ON UPDATE CASCADE, note text)",
    "CREATE TABLE part (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, note text)",
    "CREATE TABLE pair (id int PRIMARY KEY, one int REFERENCES parent (code), other int REFERENCES parent (code))",
    "CREATE TABLE common (LIKE child INCLUDING ALL, FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE)",
    "INSERT INTO parent VALUES (1, 10), (2, 20), (3, 30)",
    "INSERT INTO common VALUES (9, 30, 'common')",
    "INSERT INTO part VALUES (1, 1)",
)
MOVE = "UPDATE parent SET code = 15 WHERE id = 1"


@pytest.fixture
def sites(pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    """A link that contends with nobody but itself gives up soon."""
    monkeypatch.setattr(repetition, "PATIENCE", 8.0)
    return pair(*TABLES)


def run(sites: Pair, direction: str = "forward", step: str = "", act: Callable[[], object] = int) -> int:
    """One link, with an edit when it takes a step for the first time; how often it tried."""
    tries = 0
    edit = At(step, act)

    def progress(reached: str) -> None:
        nonlocal tries
        tries += reached == "hold_fence"
        edit(reached)

    with goes_on():
        carry(sites.job(direction), progress)
    assert edit.reached or not step
    return tries


def at_rest(sites: Pair) -> bool:
    """Both sites are equal, and no row waits."""
    for direction in ("reverse", "forward", "reverse"):
        run(sites, direction)
    waiting = [site.value("SELECT count(*) FROM concord.waiting") for site in sites.sites]
    return sites.equal and waiting == [0, 0]


def children(site: Site) -> list[tuple[int, int, str | None]]:
    return [(key, code, note) for key, code, note in site.rows("SELECT * FROM child ORDER BY id")]


def unless_locked(site: Site, statement: str) -> bool:
    """A user's edit that gives up where the link has locked the row; was it made?"""
    try:
        site.run(f"SET lock_timeout = '50ms'; {statement}")
    except psycopg.errors.LockNotAvailable:
        return False
    return True


@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_a_child_of_the_old_value_follows_its_parent(sites: Pair, first: str) -> None:
    sites.london.run(MOVE)
    sites.capetown.run("INSERT INTO child VALUES (1, 10, 'added')")
    run(sites, first)
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, "added")]
    (entry,) = sites.conflicts()
    assert (entry["type"], entry["table_name"], entry["loser_row"]["code"]) == (
        "foreign_key",
        "public.child",
        "10",
    )
    assert entry["loser_version"]["origin"].startswith("capetown")


def test_a_child_that_follows_stands_under_its_new_version(sites: Pair) -> None:
    """Else the next link would take what the repair wrote for an edit that is not registered."""
    sites.london.run(MOVE)
    sites.capetown.run("INSERT INTO child VALUES (1, 10)")
    run(sites)
    assert sites.capetown.rows(
        'SELECT p.concord_written_by = t.xmin FROM child t JOIN concord."public.child" p USING (id)'
    ) == [(True,)]


def test_a_child_follows_two_parents_at_once(sites: Pair) -> None:
    """The second repair finds the row as the first one wrote it."""
    sites.london.run(MOVE, "UPDATE parent SET code = 25 WHERE id = 2")
    sites.capetown.run("INSERT INTO pair VALUES (1, 10, 20)")
    assert run(sites) == 1
    assert at_rest(sites)
    assert sites.london.rows("TABLE pair") == [(1, 15, 25)]


@pytest.mark.parametrize("step", ["lock", "constraints"])
def test_an_edit_of_a_child_that_is_not_registered_is_kept_under_its_own_version(
    sites: Pair, step: str
) -> None:
    sites.capetown.run("INSERT INTO child VALUES (1, 10, 'added')")
    sites.capetown.register()
    before = sites.capetown.value('SELECT changed_at FROM concord."public.child"')
    sites.london.run(MOVE)
    edited = "UPDATE child SET note = 'meanwhile'"
    assert run(sites, "forward", step, lambda: sites.capetown.run(edited)) == 2
    (entry,) = sites.capetown.conflicts()
    assert entry["loser_row"]["note"] == "meanwhile"
    assert entry["loser_version"]["changed_at"] > before
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, "meanwhile")]


def test_a_child_that_comes_while_the_link_writes_is_registered_before_it_follows(sites: Pair) -> None:
    """Nobody has locked it, and it has no version at all."""
    sites.london.run(MOVE)
    added = "INSERT INTO child VALUES (1, 10, 'meanwhile')"
    assert run(sites, "forward", "lock", lambda: sites.capetown.run(added)) == 2
    (entry,) = sites.capetown.conflicts()
    assert entry["loser_version"]["origin"].startswith("capetown")
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, "meanwhile")]


def test_a_move_that_is_not_registered_is_not_undone(sites: Pair) -> None:
    """The child arrives, and the link finds its parent under another value: a user has just moved it."""
    sites.london.run("INSERT INTO child VALUES (1, 10, 'added')")
    assert run(sites, "forward", "lock", lambda: sites.capetown.run(MOVE)) == 2
    assert sites.capetown.rows("SELECT code FROM parent WHERE id = 1") == [(15,)]
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, "added")]
    assert [entry["table_name"] for entry in sites.conflicts()] == ["public.child"]


def test_a_parent_that_is_moved_on_is_followed_under_its_newest_version(sites: Pair) -> None:
    sites.capetown.run(MOVE)
    sites.capetown.register()
    before = sites.capetown.value('SELECT changed_at FROM concord."public.parent"')
    sites.london.run("INSERT INTO child VALUES (1, 10, 'added')")
    moved = "UPDATE parent SET code = 17 WHERE id = 1"
    assert run(sites, "forward", "constraints", lambda: sites.capetown.run(moved)) == 2
    (entry,) = sites.capetown.conflicts()
    assert entry["winner_row"]["code"] == "17"
    assert entry["winner_version"]["changed_at"] > before
    assert at_rest(sites)
    assert children(sites.london) == [(1, 17, "added")]


def test_a_delete_that_is_not_registered_counts_as_one(sites: Pair) -> None:
    """The parent is not merely missing: its cascade takes the child that arrives."""
    sites.london.run("INSERT INTO part VALUES (2, 1, 'added')")
    sites.capetown.run("DELETE FROM part")
    run(sites, "reverse")
    deleted = "DELETE FROM parent WHERE id = 1"
    assert run(sites, "forward", "lock", lambda: sites.capetown.run(deleted)) == 2
    assert at_rest(sites)
    assert sites.london.rows("SELECT id FROM parent ORDER BY 1") == [(2,), (3,)]
    assert sites.london.rows("TABLE part") == []
    assert [entry["key"] for entry in sites.conflicts() if entry["type"] == "foreign_key"] == [["2"]]


def test_an_edit_of_a_child_that_goes_with_its_parent_is_in_the_conflict_log(sites: Pair) -> None:
    sites.london.run("DELETE FROM parent WHERE id = 1")
    added = "INSERT INTO part VALUES (2, 1, 'meanwhile')"
    run(sites, "forward", "lock", lambda: sites.capetown.run(added))
    assert at_rest(sites)
    assert sites.london.rows("TABLE part") == []
    (entry,) = [entry for entry in sites.conflicts() if entry["key"] == ["2"]]
    assert (entry["loser_row"]["note"], entry["loser_version"]["origin"].partition("#")[0]) == (
        "meanwhile",
        "capetown",
    )


def test_a_child_that_is_edited_at_each_try_follows_at_last(sites: Pair) -> None:
    """Nothing starves: the next try locks it before the log is read."""
    sites.london.run(MOVE)
    sites.capetown.run("INSERT INTO child VALUES (1, 10)")
    made: list[bool] = []

    def edit(step: str) -> None:
        if step == "constraints":
            edited = f"UPDATE child SET note = 'edit {len(made)}'"
            made.append(unless_locked(sites.capetown, edited))

    with goes_on():
        carry(sites.job(), edit)
    assert made == [True, False]
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, "edit 0")]


@pytest.mark.parametrize("known", [True, False], ids=["with a version", "without one"])
def test_a_rewritten_table_is_repaired_while_an_older_transaction_runs(sites: Pair, *, known: bool) -> None:
    """Its rows have another writer than the one that was registered, or one that may still be registered."""
    sites.london.run("UPDATE parent SET code = 35 WHERE id = 3")
    if known:
        sites.capetown.run("INSERT INTO child VALUES (9, 30)")
        sites.capetown.register()
    else:  # the row that arrives is refused, and the one that is here has to follow
        sites.london.run("UPDATE common SET note = 'refused'")
        sites.capetown.run("ALTER TABLE common ADD CHECK (note <> 'refused')")
    with sites.capetown.log_in("postgres", autocommit=False) as older:
        older.execute("SELECT pg_current_xact_id()")
        for table in ("child", "common"):
            sites.capetown.run(f"ALTER TABLE {table} ALTER note TYPE text USING note || ''")
        run(sites)
    table = "child" if known else "common"
    assert sites.capetown.rows(f"SELECT code FROM {table} WHERE id = 9") == [(35,)]


def test_no_row_of_a_table_whose_history_is_lost_is_changed(sites: Pair) -> None:
    """Its registered writers say nothing: the parent waits, and all others go on."""
    sites.london.run(MOVE, "UPDATE parent SET code = 25 WHERE id = 2")
    sites.capetown.run("INSERT INTO child VALUES (1, 10)")
    sites.capetown.register()
    lost = "UPDATE concord.replicated_table SET history_lost = 'for a test' WHERE name = 'public.child'"
    sites.capetown.run(lost)
    run(sites)
    assert sites.capetown.rows("SELECT code FROM parent ORDER BY id") == [(10,), (25,), (30,)]
    waiting = "SELECT table_name, key ->> 0 FROM concord.waiting"
    assert sites.capetown.rows(waiting) == [("public.parent", "1")]

    sites.capetown.run("INSERT INTO part VALUES (5, 2)")
    sites.london.run("DELETE FROM parent WHERE id = 2")
    run(sites)
    assert sites.capetown.rows("SELECT id FROM part ORDER BY id") == [(1,)], "the cascade is done"
    assert sites.capetown.rows(waiting) == [("public.parent", "1")]

    sites.capetown.run("UPDATE concord.replicated_table SET history_lost = NULL")
    run(sites)
    assert children(sites.capetown) == [(1, 15, None)], "a parent that waited is followed as well"
    assert at_rest(sites)
    assert children(sites.london) == [(1, 15, None)]
