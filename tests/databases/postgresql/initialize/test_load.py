"""An empty table is filled from COPY to COPY, in ranges from one snapshot; versions come where the source has them."""

import os
import signal
from functools import partial

import pytest
from pyspark.sql import SparkSession

from concord.jobs.initialization import How
from spark_jobs.initialize import initialize
from tests.given.at_step import At
from tests.given.filtered_pair import filtered
from tests.given.fixtures import MakePair
from tests.given.killed_driver import Forked, wait_until_stopped
from tests.given.strangers import forget, initialization, initialized, unstamped
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = ("CREATE TABLE book (id int PRIMARY KEY, title text)",)
MANY = "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 1000) n"
VERSIONS = (
    'SELECT id, origin, changed_at, derived, vector, deleted, born FROM concord."public.book"'
    " WHERE origin <> '' ORDER BY id"
)
STATE = "SELECT bound, looked_at FROM concord.initialization"


def no_spark() -> SparkSession:
    raise AssertionError("rows that go straight need no Spark")


@pytest.fixture
def strangers(pair: MakePair) -> Pair:
    sites = pair(*BOOK)
    forget(sites)
    return Pair(sites.london, sites.capetown, sites.tables, no_spark)


def test_rows_go_without_spark_and_only_what_has_a_version_brings_one(strangers: Pair) -> None:
    london, capetown = strangers.sites
    unstamped(london, MANY)
    london.run(
        "UPDATE book SET title = 'edited' WHERE id % 100 = 0",
        "DELETE FROM book WHERE id = 7",
        "INSERT INTO book VALUES (2000, 'new')",
        "INSERT INTO book VALUES (3000, 'came and went')",
        "DELETE FROM book WHERE id = 3000",
    )
    (book,) = initialized(strangers, chunk_rows=300).tables
    assert (book.how, book.rows, book.written) == (How.LOAD, 1002, {"capetown": 1002}), "two are tombstones"
    assert capetown.rows(VERSIONS) == london.rows(VERSIONS)
    assert len(capetown.rows(VERSIONS)) == 13
    assert capetown.rows('SELECT DISTINCT received_from FROM concord."public.book"') == [("london",)]
    assert strangers.equal
    assert [each.total("acquired") for each in strangers.settle()] == [0] * 4


def test_all_ranges_are_read_in_one_snapshot(pair: MakePair) -> None:
    """Unique values that users move between ranges meanwhile would stand in each other's way."""
    sites = pair("CREATE TABLE seat (id int PRIMARY KEY, number int UNIQUE)")
    forget(sites)
    unstamped(sites.london, "INSERT INTO seat SELECT n, n FROM generate_series(1, 1000) n")
    swap = (
        "UPDATE seat SET number = -1 WHERE id = 3",
        "UPDATE seat SET number = 3 WHERE id = 997",
        "UPDATE seat SET number = 997 WHERE id = 3",
    )
    strangers = Pair(sites.london, sites.capetown, sites.tables, no_spark)
    (seat,) = initialized(
        strangers, chunk_rows=100, progress=At("chunk_commit", lambda: sites.london.run(*swap))
    ).tables
    assert seat.rows == 1000
    assert sites.capetown.rows("SELECT id, number FROM seat WHERE id IN (3, 997) ORDER BY id") == [
        (3, 3),
        (997, 997),
    ]
    sites.settle()
    assert sites.equal
    assert sites.conflicts() == []


def test_each_range_is_noted_with_its_rows_or_not_at_all(strangers: Pair) -> None:
    london, capetown = strangers.sites
    unstamped(london, MANY)
    seen: list[tuple[int, object]] = []

    def look(step: str) -> None:
        if step == "chunk_commit":
            ((bound, done),) = capetown.rows(STATE)
            seen.append((capetown.value("SELECT count(*) FROM book"), (bound, done)))

    initialized(strangers, chunk_rows=250, progress=look)
    assert seen == [(0, (None, 0)), *((n, ([f"{n}"], n)) for n in (250, 500, 750))]


def test_what_users_of_the_empty_site_deleted_again_meanwhile_is_deleted_everywhere(pair: MakePair) -> None:
    """Its tombstone is newer than a row that nobody has changed: row and tombstone side by side would never agree."""
    sites = pair(*BOOK)
    forget(sites)
    london, capetown = sites.sites
    unstamped(london, MANY)
    came_and_went = At(
        "chunk_commit",
        lambda: capetown.run("INSERT INTO book VALUES (950, 'mine')", "DELETE FROM book WHERE id = 950"),
    )
    initialized(sites, chunk_rows=100, progress=came_and_went)
    assert capetown.value("SELECT count(*) FROM book") == 999
    sites.settle()
    assert sites.equal
    assert london.value("SELECT count(*) FROM book WHERE id = 950") == 0


def test_a_range_that_users_of_the_empty_site_were_faster_in_keeps_their_rows(pair: MakePair) -> None:
    sites = pair(*BOOK)
    forget(sites)
    london, capetown = sites.sites
    unstamped(london, MANY)
    london.run("UPDATE book SET title = 'edited' WHERE id = 951")
    faster = At("chunk_commit", lambda: capetown.run("INSERT INTO book VALUES (950, 'mine'), (951, 'mine')"))
    initialized(sites, chunk_rows=100, progress=faster)
    assert capetown.rows("SELECT title FROM book WHERE id = 950") == [("mine",)]
    assert capetown.value("SELECT count(*) FROM book") == 1000
    sites.settle()
    assert sites.equal
    assert {each["key"][0] for each in sites.conflicts()} == {"950", "951"}, "whoever lost is kept whole"


def test_rows_after_somebody_began_to_listen_get_versions(pair: MakePair) -> None:
    sites = pair(*BOOK)
    forget(sites)
    unstamped(sites.london, MANY)
    listen = (
        "INSERT INTO concord.link_state (link, role, peer, initialized, history)"
        """ VALUES ('north/forward', 'source', 'oslo', '{"public.book": {}}', '[]')"""
    )
    began = At("chunk_commit", lambda: sites.capetown.run(listen), 4)
    (book,) = initialized(sites, chunk_rows=100, progress=began).tables
    assert book.rows == 1000
    versions = sites.capetown.rows('SELECT min(id), count(*), max(changed_at) FROM concord."public.book"')
    assert versions == [(401, 600, 1)], "older than every edit"
    sites.settle()
    assert sites.equal


TYPES = {
    "a": ("mood", "'so ''so'''"),
    "b": ("mood[]", """'{NULL,"so ''so''",good}'"""),
    "c": ("interval", "'1 year -3 days 00:00:00.000001'"),
    "d": ("numeric(20,4)[]", "'{1.5000,NaN,-0.0001}'"),
    "e": ("positive", "7.10"),
    "f": ("char(9)", "'blank  '"),
    "g": ("json", """'{"b": 1,  "a": "\\\\u00e9\\\\n"}'"""),
    "h": ("bytea", r"'\x00ff0a0d5c'"),
    "i": ("tstzrange", "'[2026-01-01 00:00+03,)'"),
    "j": ("float8", "0.1::float8 + 0.2"),
    "k": ("text", r"E'tab\there\nand \\N, \\. é'"),
    "l": ("text", "NULL"),
    "n": ("tsvector", "'a:1 b:2'"),
    "o": ("timestamptz", "'infinity'"),
    "p": ("point", "'(1.5,-0)'"),
    "q": ("bit varying(5)", "B'101'"),
    "r": ("jsonb", """'{"n": 1.0, "t": "\\\\u00e9"}'"""),
}
BINARY = ("h", "j", "k", "l", "o", "r")


@pytest.mark.parametrize("columns", [tuple(TYPES), BINARY], ids=["as texts", "binary"])
def test_values_of_every_type_arrive_as_they_are(pair: MakePair, columns: tuple[str, ...]) -> None:
    listed = ", ".join(f"{name} {TYPES[name][0]}" for name in columns)
    sites = pair(
        "CREATE TYPE mood AS ENUM ('good', 'so ''so''')",
        "CREATE DOMAIN positive AS numeric CHECK (VALUE > 0)",
        f"CREATE TABLE thing (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {listed},"
        " twice int GENERATED ALWAYS AS (id * 2) STORED)",
    )
    forget(sites)
    values = ", ".join(TYPES[name][1] for name in columns)
    unstamped(sites.london, f"INSERT INTO thing ({', '.join(columns)}) VALUES ({values})")
    sites.london.run(f"INSERT INTO thing ({', '.join(columns)}) VALUES ({values})")
    initialized(Pair(sites.london, sites.capetown, sites.tables, no_spark))
    assert sites.equal
    assert sites.capetown.rows("SELECT thing::text FROM thing ORDER BY id") == sites.london.rows(
        "SELECT thing::text FROM thing ORDER BY id"
    )
    assert [each.total("acquired") for each in sites.settle()] == [0] * 4


def test_of_a_filtered_table_only_what_is_shared_is_loaded(pair: MakePair) -> None:
    sites = pair("CREATE TABLE book (id int PRIMARY KEY, region int, title text)")
    shared = filtered(sites)
    forget(shared)
    unstamped(sites.london, "INSERT INTO book SELECT n, n % 2, 'book' FROM generate_series(1, 100) n")
    sites.london.run(
        "UPDATE book SET title = 'edited' WHERE id IN (11, 12)", "DELETE FROM book WHERE id IN (21, 22)"
    )
    initialized(Pair(sites.london, sites.capetown, shared.tables, no_spark))
    assert sites.capetown.value("SELECT count(*) FROM book WHERE region = 1") == 49
    assert sites.capetown.value("SELECT count(*) FROM book") == 49
    assert sites.capetown.rows('SELECT id, deleted FROM concord."public.book" ORDER BY id') == [
        (11, False),
        (21, True),
        (22, True),
    ]
    assert [each.total("acquired") for each in shared.settle()] == [0] * 4


@pytest.mark.parametrize(("step", "occurrence"), [("stage", 5), ("chunk_commit", 4)])
def test_a_run_that_was_overtaken_in_a_load_commits_nothing_and_holds_nobody_up(
    pair: MakePair, step: str, occurrence: int
) -> None:
    """Stopped with ranges in its open transactions, and woken when another run has done its work."""
    sites = pair(*BOOK)
    forget(sites)
    unstamped(sites.london, MANY)
    work = partial(initialize, initialization(sites, chunk_rows=100), sites.spark)
    zombie = Forked(sites, work, signal.SIGSTOP, step, occurrence)
    try:
        wait_until_stopped(zombie)
        (book,) = initialized(
            Pair(sites.london, sites.capetown, sites.tables, no_spark), chunk_rows=100
        ).tables
        assert (book.rows, sites.capetown.value("SELECT count(*) FROM book")) == (1000, 1000)
        before = [site.stored for site in sites.sites]
    finally:
        os.kill(zombie.pid, signal.SIGCONT)
        ended = zombie.wait()
    assert ended == (1, "site_unavailable"), "its sessions were ended"
    assert [site.stored for site in sites.sites] == before
    sites.settle()
    assert sites.equal
