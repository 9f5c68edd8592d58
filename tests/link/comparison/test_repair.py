"""A repair leaves no difference, logs every row it takes away, and every site of the topology follows."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.jobs.comparison import CompareJob, CompareReport, Repair, TableComparison
from concord.messages.errors import LeaseLost
from embedded.postgres import Server
from spark_jobs.compare import compare
from tests.conftest import Database
from tests.given.at_step import At
from tests.given.behind_capture import behind_the_back
from tests.given.comparison import compared, kinds, only
from tests.given.fixtures import MakePair, MakeUnlike, site_on
from tests.given.killed_driver import killed
from tests.given.site import provision_site
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE shelf (id int PRIMARY KEY)",
    "CREATE TABLE book (id int PRIMARY KEY, title text, shelf int REFERENCES shelf)",
    "INSERT INTO shelf VALUES (1), (2)",
    "INSERT INTO book SELECT n, 'book ' || n, 1 FROM generate_series(1, 50) n",
)
SHADOW = 'concord."public.book"'
MAPPED = """
- table: public.account
  at: {capetown: public.konto}
  columns: [id, iban, status]
  mappings:
    capetown:
      cast: {id: {canonical: integer, here: text, into: nummer}}
      split: {iban: {into: [bank, rest], lengths: [4, 6]}}
      values: {status: {map: {A: active, I: inactive}, into: state}}
"""
LONDON = "CREATE TABLE account (id int PRIMARY KEY, iban text, status text)"
CAPETOWN = "CREATE TABLE konto (nummer text PRIMARY KEY, bank text, rest text, state text)"


@pytest.fixture(scope="module")
def one_pair(server_with_logins: Server, spark: SparkSession) -> Iterator[Pair]:
    names = [f"repair_{os.urandom(6).hex()}" for _ in range(2)]
    for name in names:
        server_with_logins.create_database(name)
    london, capetown = map(site_on, [server_with_logins] * 2, ("london", "capetown"), names)
    yield begin(london, capetown, BOOK, lambda: spark)
    for site in (london, capetown):
        site.connection.close()
        server_with_logins.drop_database(site.database)


@pytest.fixture
def shared(one_pair: Pair) -> Pair:
    """For tests that damage rows of their own and leave none damaged; the conflict logs are empty."""
    for site in one_pair.sites:
        site.run("DELETE FROM concord.conflict")
    return one_pair


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    made = pair(*BOOK)
    made.london.run("UPDATE book SET title = 'edited ' || id WHERE id BETWEEN 1 AND 12")
    made.capetown.run("DELETE FROM book WHERE id = 13")
    made.settle()
    return made


def damage(sites: Pair) -> None:
    """Every kind of difference, and for each what the rule says of it."""
    behind_the_back(
        sites.capetown,
        "UPDATE book SET title = 'damaged' WHERE id IN (1, 20)",  # restamp: london's name is greater
        "DELETE FROM book WHERE id IN (2, 21)",  # restamp: a row stays before none
        "INSERT INTO shelf VALUES (3)",
        "INSERT INTO book VALUES (90, 'only here', 3)",  # restamp, with its parent
        f"DELETE FROM {SHADOW} WHERE id = 3",  # send: the version is lost
        f"DELETE FROM {SHADOW} WHERE id = 4; UPDATE book SET title = 'not captured' WHERE id = 4",  # replace
        "INSERT INTO book VALUES (13, 'back from the dead', 1)",  # restamp: both know it as deleted
    )
    behind_the_back(
        sites.london,
        f"UPDATE book SET title = 'older' WHERE id = 5; UPDATE {SHADOW} SET changed_at = 5, vector ="
        " '{\"london#1\": [5, 0]}' WHERE id = 5",  # send: an update was lost
    )
    sites.capetown.run("DELETE FROM book WHERE id = 6", "UPDATE book SET title = 'concurrent' WHERE id = 7")
    sites.london.run("UPDATE book SET title = 'conflict' WHERE id = 7")
    sent = f"UPDATE {SHADOW} SET position = '3'::xid8 WHERE id IN (6, 7)"
    sites.capetown.run(sent)  # delete, and resolve: as if both had been sent, and lost on the way
    sites.london.run(sent)


PLANNED = {"restamp": 7, "send": 2, "replace": 1, "delete": 1, "resolve": 1}
LOST = [
    *(("1", "damaged"), ("13", "back from the dead"), ("20", "damaged"), ("4", "not captured")),
    *(("6", "edited 6"), ("7", "concurrent")),
]


def lost(sites: Pair) -> list[tuple[str, str]]:
    """Key and title of every loser in both logs."""
    return sorted((each["key"][0], (each["loser_row"] or {}).get("title")) for each in sites.conflicts())


def is_repaired(sites: Pair) -> None:
    report = compared(sites)
    assert [(each.key, each.source_version, each.target_version) for each in report.differences] == []
    assert (report.found, sum(table.in_flight for table in report.tables)) == (0, 0)
    assert sites.equal
    assert lost(sites) == LOST
    titles = dict(sites.capetown.rows("SELECT id, title FROM book WHERE id < 14 OR id IN (20, 21, 90)"))
    assert 13 not in titles
    assert 6 not in titles
    assert [titles[key] for key in (1, 2, 3, 4, 5, 7, 20, 21, 90)] == [
        *(
            "edited 1",
            "edited 2",
            "edited 3",
            "edited 4",
            "edited 5",
            "conflict",
            "book 20",
            "book 21",
            "only here",
        )
    ]


def test_a_plan_says_what_a_repair_then_does(sites: Pair) -> None:
    damage(sites)
    before = [site.writes() for site in sites.sites]
    plan = compared(sites, repair="plan")
    assert [site.writes() for site in sites.sites] == before
    planned: Counter[str] = sum((Counter(table.remedies) for table in plan.tables), Counter())
    assert planned == PLANNED
    said = {each.key[0]: each.remedy for each in plan.differences if each.table == "public.book"}
    assert said["1"] == "restamp: london to capetown, site priority and name"
    assert said["6"] == "delete: capetown to london, its delete includes this row's version"
    done = compared(sites, repair="apply")
    assert kinds(done) == kinds(plan)
    written = sum((Counter(table.written) for table in done.tables), Counter())
    # one write for each key, and a second one where a restamped version goes back to the site it came from
    assert sum(written.values()) == sum(PLANNED.values()) + PLANNED["restamp"]
    is_repaired(sites)
    the_links_have_nothing_to_fight_about(sites)


def the_links_have_nothing_to_fight_about(sites: Pair) -> None:
    """A row that was united announces itself once (rule 6); then nothing moves and nothing is logged."""
    sites.settle()
    before = [site.writes() for site in sites.sites]
    assert [sites.run(direction).total("acquired") for direction in ("forward", "reverse")] == [0, 0]
    replicated = ("public.", "concord.public", "concord.conflict", "concord_staging")
    for site, old in zip(sites.sites, before, strict=True):
        written = [name for name, rows in site.writes().items() if rows != old.get(name)]
        assert not [name for name in written if name.startswith(replicated)]
    assert lost(sites) == LOST


def test_a_repair_moves_no_position_and_leaves_what_is_in_flight(shared: Pair) -> None:
    behind_the_back(shared.capetown, "UPDATE book SET title = 'damaged' WHERE id = 30")
    shared.london.run("UPDATE book SET title = 'in flight' WHERE id = 31")
    history = "SELECT link, history, updated_at FROM concord.link_state ORDER BY link"
    before = [site.rows(history) for site in shared.sites]
    assert sum(table.in_flight for table in compared(shared, repair="apply").tables) == 1
    assert [site.rows(history) for site in shared.sites] == before
    assert shared.capetown.rows("SELECT title FROM book WHERE id IN (30, 31) ORDER BY id") == [
        ("book 30",),
        ("book 31",),
    ]


def test_a_person_may_prefer_one_side(shared: Pair) -> None:
    shared.london.run("UPDATE book SET title = 'edited' WHERE id = 32")
    shared.settle()
    behind_the_back(shared.capetown, "UPDATE book SET title = 'damaged' WHERE id IN (32, 33)")
    compared(shared, repair="apply", prefer="target")
    assert shared.london.rows("SELECT title FROM book WHERE id IN (32, 33)") == [("damaged",)] * 2
    assert lost(shared) == [("32", "edited"), ("33", "book 33")]


def test_a_repair_of_tables_that_no_site_maps_asks_for_no_spark(shared: Pair) -> None:
    def none() -> SparkSession:
        raise AssertionError("nothing here is worth a session of Spark")

    behind_the_back(shared.capetown, "UPDATE book SET title = 'by nobody' WHERE id = 40")
    assert only_book(compared(replace(shared, spark=none), repair="apply")).written == {
        "capetown": 1,
        "london": 1,
    }
    assert shared.capetown.value("SELECT title FROM book WHERE id = 40") == "book 40"
    assert compared(shared).found == 0


def only_book(report: CompareReport) -> TableComparison:
    (book,) = (table for table in report.tables if table.table == "public.book")
    return book


def test_a_user_who_writes_while_it_repairs_is_not_overwritten(shared: Pair) -> None:
    """The guard decides again, under lock, against what is there now."""
    behind_the_back(shared.capetown, "UPDATE book SET title = 'damaged' WHERE id IN (34, 35)")

    def write() -> None:
        shared.capetown.run("UPDATE book SET title = 'by a user' WHERE id IN (34, 35)")

    compared(shared, repair="apply", at=At("hold_fence", write))
    shared.settle()
    assert shared.equal
    assert shared.london.rows("SELECT title FROM book WHERE id IN (34, 35)") == [("by a user",)] * 2


def test_a_third_site_follows(
    sites: Pair, server_with_logins: Server, database: Callable[[], Database]
) -> None:
    """Oslo shares capetown's tables and hears of every repair; its own damage is found by its own comparison."""
    oslo = site_on(server_with_logins, "oslo", database().name)
    oslo.run(*BOOK, "UPDATE book SET title = 'edited ' || id WHERE id <= 12; DELETE FROM book WHERE id = 13")
    provision_site(oslo, sites.tables)
    other = {"synchronization": "capetown_oslo"}
    further = Pair(sites.capetown, oslo, sites.tables, sites.spark)
    declare_equal(further.job(**other))
    _both_ways(further, other)
    damage(sites)
    compared(sites, repair="apply")
    _both_ways(further, other)
    _both_ways(further, other)
    assert kinds(compared(further, **other)) == {("6",): "only_target"}, (
        "capetown's delete was lost for oslo too"
    )
    assert [each["loser_row"] for each in oslo.conflicts()] == [], "nothing was in dispute there"
    compared(further, repair="apply", **other)
    is_repaired(sites)
    everything = "SELECT id, title, shelf FROM book ORDER BY id"
    assert oslo.rows(everything) == sites.london.rows(everything)
    assert [(each["key"], each["resolver"]) for each in oslo.conflicts()] == [(["6"], "repair")]
    oslo.connection.close()


def _both_ways(pair: Pair, fields: dict[str, str]) -> None:
    for direction in ("forward", "reverse"):
        pair.run(direction, **fields)


@pytest.mark.parametrize("occurrence", [1, 2])
def test_a_repair_killed_before_either_commit_can_be_repeated(sites: Pair, occurrence: int) -> None:
    damage(sites)
    job = CompareJob(link=sites.job(), repair=Repair.APPLY)
    killed(sites, partial(compare, job, sites.spark), "commit", occurrence)
    compared(sites, repair="apply")
    sites.settle()  # what the first commit has restamped is announced, and a link may carry it back as well
    is_repaired(sites)


def test_a_repair_that_was_overtaken_writes_nothing(shared: Pair) -> None:
    behind_the_back(shared.capetown, "UPDATE book SET title = 'damaged' WHERE id = 36")
    with pytest.raises(LeaseLost):
        compared(shared, repair="apply", at=At("hold_fence", lambda: shared.run("forward")))
    assert lost(shared) == []
    behind_the_back(shared.capetown, "UPDATE book SET title = 'book 36' WHERE id = 36")


def test_one_table_alone_is_repaired_in_as_many_batches_as_it_takes(
    shared: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concord.comparison.repair.BATCH", 2)
    behind_the_back(
        shared.capetown,
        "UPDATE book SET title = 'damaged' WHERE id BETWEEN 40 AND 44",
        "INSERT INTO shelf VALUES (9)",
    )
    assert compared(shared, repair="apply", chosen=("public.book",)).found == 5
    assert len(shared.conflicts()) == 5
    assert kinds(compared(shared)) == {("9",): "only_target"}
    behind_the_back(shared.capetown, "DELETE FROM shelf WHERE id = 9")


def test_sites_that_keep_a_table_differently_are_compared_in_canonical_form(
    unlike: MakeUnlike,
) -> None:
    """Key and rows are mapped; differences show each site's own row, and a repair writes each site's own columns."""
    sites = unlike(MAPPED, LONDON, CAPETOWN)
    sites.london.run("INSERT INTO account SELECT n, 'BANK00' || n, 'A' FROM generate_series(1000, 1020) n")
    sites.settle()
    sites.capetown.run("UPDATE konto SET state = 'inactive' WHERE nummer = '1003'")
    assert (compared(sites).found, only(compared(sites)).in_flight) == (0, 1)
    sites.settle()
    behind_the_back(sites.capetown, "UPDATE konto SET state = 'inactive' WHERE nummer = '1001'")
    behind_the_back(sites.london, "DELETE FROM account WHERE id = 1002")
    report = compared(sites, repair="apply")
    assert kinds(report) == {("1001",): "content", ("1002",): "only_target"}
    damaged = next(each for each in report.differences if each.key == ("1001",))
    assert damaged.source_row == {"id": "1001", "iban": "BANK001001", "status": "A"}
    assert damaged.target_row == {"nummer": "1001", "bank": "BANK", "rest": "001001", "state": "inactive"}
    assert compared(sites).found == 0
    assert sites.equal
    assert sites.capetown.rows("SELECT state FROM konto WHERE nummer IN ('1001', '1003') ORDER BY 1") == [
        ("active",),
        ("inactive",),
    ]
    assert sites.london.value("SELECT count(*) FROM account") == 21
