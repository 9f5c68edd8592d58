"""A comparison finds every difference and nothing else, whoever writes meanwhile, and writes nothing itself."""

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from concord.comparison import compared_table, side
from concord.databases.postgresql.compare import queries as asking
from concord.jobs.comparison import CompareReport
from concord.messages.errors import NotInitialized, StructureChanged
from embedded.postgres import Server
from tests.given.at_step import At
from tests.given.behind_capture import behind_the_back
from tests.given.comparison import Kinds, compared, kinds, only
from tests.given.fixtures import MakePair, site_on
from tests.given.two_sites import Pair, begin

pytestmark = pytest.mark.spark

ROWS = 6_000
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL, price numeric)",
    f"INSERT INTO item SELECT n, 'common ' || n, n / 7.0 FROM generate_series(1, {ROWS}) n",
    "ANALYZE item",
)
SHADOW = 'concord."public.item"'


@pytest.fixture(scope="module")
def damaged(server_with_logins: Server, spark: SparkSession) -> Iterator[tuple[Pair, Kinds]]:
    """Some rows have never been changed; some have, at either site; one is deleted. Then both sites are damaged.

    Nothing that a test does touches the damaged keys, so that every comparison finds just them.
    """
    names = [f"compare_{os.urandom(6).hex()}" for _ in range(2)]
    for name in names:
        server_with_logins.create_database(name)
    london, capetown = map(site_on, [server_with_logins] * 2, ("london", "capetown"), names)
    made = begin(london, capetown, ITEM, lambda: spark)
    made.london.run("UPDATE item SET token = 'from london' WHERE id BETWEEN 1 AND 30")
    made.capetown.run("UPDATE item SET token = 'from capetown' WHERE id BETWEEN 31 AND 60")
    made.london.run("DELETE FROM item WHERE id = 62", "DELETE FROM item WHERE id = 61")
    made.settle()
    report = compared(made)
    assert (report.found, only(report).equal, only(report).in_flight) == (0, ROWS - 2, 0)
    yield made, damage(made)
    for site in made.sites:
        site.connection.close()
        server_with_logins.drop_database(site.database)


@pytest.fixture
def sites(damaged: tuple[Pair, Kinds]) -> Pair:
    """The damaged sites at rest."""
    damaged[0].settle()
    return damaged[0]


@pytest.fixture
def planted(damaged: tuple[Pair, Kinds]) -> Kinds:
    return damaged[1]


def damage(sites: Pair) -> Kinds:
    """One difference of every kind, and what a comparison must call it."""
    behind_the_back(
        sites.london,
        "UPDATE item SET token = 'damaged' WHERE id = 100",  # never captured anywhere
        "UPDATE item SET price = 1.50 WHERE id = 1",  # under the same version
        "DELETE FROM item WHERE id = 101",
        f"UPDATE {SHADOW} SET derived = derived + 1 WHERE id = 31",  # the same row
        f"INSERT INTO {SHADOW} SELECT 103, 'london#1', 5, 0, '{{\"london#1\": [5, 0]}}', true, false, false,"
        " NULL, '3'::xid8; DELETE FROM item WHERE id = 103",
    )
    behind_the_back(
        sites.capetown,
        "INSERT INTO item VALUES (9000, 'extra', NULL)",
        "UPDATE item SET price = 1.5 WHERE id = 1",  # equal by value, not as it was written
        "DELETE FROM item WHERE id = 2",
        f"DELETE FROM {SHADOW} WHERE id = 61",  # a tombstone is forgotten too early
    )
    only_source, only_target = "only_source", "only_target"
    return {
        ("100",): "content",
        ("1",): "content",
        ("101",): only_target,
        ("103",): only_target,
        ("9000",): only_target,
        ("2",): only_source,
        ("31",): "version",
        ("61",): "version",
    }


def test_every_kind_of_difference_is_found_and_nothing_else_and_nothing_is_written(
    sites: Pair, planted: Kinds
) -> None:
    before = [site.writes() for site in sites.sites]
    report = compared(sites)
    compared(sites, repair="plan")
    assert [site.writes() for site in sites.sites] == before
    assert kinds(report) == planted
    table = only(report)
    assert (table.differing, table.versions, table.only_source, table.only_target) == (2, 2, 1, 3)
    assert table.source_rows == sites.london.value("SELECT count(*) FROM item")
    assert table.target_rows == sites.capetown.value("SELECT count(*) FROM item")
    assert table.equal == table.source_rows - 4 == table.target_rows - 6
    shows_both_rows_and_both_versions(report)


def shows_both_rows_and_both_versions(report: CompareReport) -> None:
    found = {each.key: each for each in report.differences}
    content, tombstone, missing = found["1",], found["103",], found["2",]
    assert content.source_row == {"id": "1", "token": "from london", "price": "1.50"}
    assert content.target_row == {"id": "1", "token": "from london", "price": "1.5"}
    assert content.source_version == content.target_version
    assert content.source_version
    assert content.source_version["origin"] == "london#1"
    assert tombstone.source_row is None
    assert tombstone.source_version
    assert tombstone.source_version["deleted"]
    assert (tombstone.target_row or {})["token"] == "common 103"
    assert tombstone.target_version is None
    assert missing.target_row is None
    assert (missing.source_row or {})["token"] == "from london"


def test_a_comparison_with_few_differences_asks_for_no_spark(sites: Pair, planted: Kinds) -> None:
    def none() -> SparkSession:
        raise AssertionError("nothing here is worth a session of Spark")

    assert kinds(compared(replace(sites, spark=none))) == planted


def test_many_rows_that_differ_are_joined_by_spark_to_the_same_result(
    sites: Pair, planted: Kinds, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites.london.run("UPDATE item SET token = 'unsent' WHERE id IN (5001, 5002)")
    asked = []

    def session() -> SparkSession:
        asked.append(1)
        return spark

    monkeypatch.setattr(compared_table, "SPARK_FROM", 1)
    report = compared(replace(sites, spark=session))
    assert (kinds(report), only(report).in_flight, asked) == (planted, 2, [1])


def test_a_table_is_read_by_many_questions_in_one_cut_of_each_site(
    sites: Pair, planted: Kinds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sessions that share the work join the cut, whatever has been committed since."""
    monkeypatch.setattr(asking, "ROWS_PER_QUESTION", 300)
    monkeypatch.setattr(asking, "BLOCKS_PER_QUESTION", 1)
    later = At("target_cut", lambda: sites.london.run("INSERT INTO item VALUES (8200, 'later', 1)"))
    report = compared(sites, at=later)
    assert (kinds(report), only(report).in_flight) == (planted, 0)
    assert compared(sites).tables[0].in_flight == 1


def test_too_many_keys_in_flight_to_list_are_found_in_their_buckets(
    sites: Pair, planted: Kinds, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites.london.run("UPDATE item SET token = 'unsent' WHERE id BETWEEN 400 AND 420")
    monkeypatch.setattr(compared_table, "MOST_VOLATILE", 20)
    report = compared(sites)
    assert (kinds(report), only(report).in_flight) == (planted, 21)


def test_of_many_differences_the_first_are_kept_and_all_are_counted(sites: Pair, planted: Kinds) -> None:
    report = compared(sites, kept=3)
    assert report.found == len(planted)
    assert [each.key for each in report.differences] == [("1",), ("100",), ("101",)]


def test_what_a_link_has_not_sent_yet_is_in_flight_and_no_difference(sites: Pair, planted: Kinds) -> None:
    sites.london.run(
        "UPDATE item SET token = 'unsent' WHERE id IN (3, 40, 200)",
        "DELETE FROM item WHERE id = 41",
        "INSERT INTO item VALUES (8000, 'unsent', 1)",
    )
    sites.capetown.run("UPDATE item SET token = 'unsent too' WHERE id IN (200, 201)")
    report = compared(sites)
    assert (kinds(report), only(report).in_flight) == (planted, 6)
    sites.run("forward")
    report = compared(sites)
    assert (kinds(report), only(report).in_flight) == (planted, 2)


def test_two_rows_under_one_version_differ_also_while_the_version_is_announced_again(
    sites: Pair, planted: Kinds
) -> None:
    sites.london.run(
        f"UPDATE {SHADOW} SET position = pg_current_xact_id(), received_from = NULL WHERE id = 1"
    )
    report = compared(sites)
    assert (kinds(report), only(report).in_flight) == (planted, 0)


def test_a_link_that_runs_between_the_two_cuts_makes_no_false_alarm(sites: Pair, planted: Kinds) -> None:
    """Source and target are looked at one after the other; whatever reaches one of them between is in flight."""
    sites.london.run("UPDATE item SET token = 'unsent' WHERE id BETWEEN 300 AND 330")
    sites.capetown.run("UPDATE item SET token = 'unsent' WHERE id BETWEEN 331 AND 360")

    def everything_moves() -> None:
        sites.settle()
        sites.london.run("UPDATE item SET token = 'later' WHERE id BETWEEN 320 AND 340")

    report = compared(sites, at=At("target_cut", everything_moves))
    assert kinds(report) == planted


def test_planted_differences_are_found_while_users_write_and_links_run(sites: Pair, planted: Kinds) -> None:
    with busy(sites):
        reports = [compared(sites) for _ in range(2)]
    assert [kinds(report) for report in reports] == [planted] * 2
    assert sum(only(report).in_flight for report in reports) > 0, "the test has shown something"


def test_tombstones_that_are_cleaned_away_at_one_site_first_are_no_difference(
    sites: Pair, planted: Kinds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cleanup publishes at every site before it deletes at any; T20, rule 10.

    A version that one site may have forgotten makes no bucket differ either: key 31 has an older one. Where another
    key of its bucket differs, it is looked at.
    """
    stamp = sites.london.value(f"SELECT changed_at FROM {SHADOW} WHERE id = 62")
    for site in sites.sites:
        site.run(f"UPDATE {SHADOW} SET agreed = true WHERE id = 62")
    sites.london.run(f"DELETE FROM {SHADOW} WHERE id = 62")
    # one after the other, as it goes on: published at both, deleted at one, published only there
    published = kinds(compared(sites))
    sites.london.run(f"UPDATE concord.site SET stamp_floor = {stamp - 1}")
    sites.capetown.run(f"UPDATE {SHADOW} SET agreed = false WHERE id = 62")
    early = kinds(compared(sites))
    sites.capetown.run(f"UPDATE concord.site SET stamp_floor = {stamp}")
    remembered = {key: kind for key, kind in planted.items() if key != ("31",)}
    assert [published, early, kinds(compared(sites))] == [
        planted,
        remembered | {("62",): "version"},
        remembered,
    ]
    monkeypatch.setattr(side, "buckets", lambda *extents: 1)
    assert kinds(compared(sites)) == planted
    sites.capetown.run(f"DELETE FROM {SHADOW} WHERE id = 62")
    for site in sites.sites:
        site.run("UPDATE concord.site SET stamp_floor = 0")


def test_a_table_that_is_rewritten_while_it_is_compared_is_left_out_and_not_repaired(pair: MakePair) -> None:
    """F87: to a cut that is older than the rewrite, every row is gone."""
    sites = pair(*(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)" for name in ("one", "two")))
    sites.london.run("INSERT INTO one VALUES (1, 'here')", "INSERT INTO two VALUES (1, 'here')")
    sites.settle()
    rewrite = "ALTER TABLE one ALTER note TYPE text USING note || ''"
    for repair in ("none", "apply"):
        report = compared(sites, repair, at=At("target_cut", lambda: sites.london.run(rewrite)))
        assert [table.table for table in report.tables] == ["public.two"]
        assert report.stopped == {
            "public.one": "london: public.one was altered while it was read; the next run looks anew"
        }
    with pytest.raises(StructureChanged, match=r"public\.one was altered"):
        compared(sites, chosen=("public.one",), at=At("target_cut", lambda: sites.london.run(rewrite)))
    assert only(compared(sites, chosen=("public.one",))).differences == 0
    sites.capetown.run("UPDATE one SET note = 'there'")
    sites.settle()
    assert sites.equal


def test_a_table_that_cannot_be_read_is_left_out_and_named(pair: MakePair) -> None:
    """The catalogue is damaged at both sites: the label of the value is that of another one."""
    sites = pair(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE TABLE person (id int PRIMARY KEY, mood mood)",
        "CREATE TABLE town (id int PRIMARY KEY)",
    )
    sites.london.run("INSERT INTO person VALUES (1, 'sad')", "INSERT INTO town VALUES (1)")
    sites.settle()
    for site in sites.sites:
        site.run("UPDATE pg_enum SET oid = (oid::int8 + 2000000)::oid WHERE enumlabel = 'sad'")

    report = compared(sites)

    assert [(each.table, each.equal) for each in report.tables] == [("public.town", 1)]
    assert list(report.stopped) == ["public.person"]
    said = r"public\.person: (london|capetown) cannot read it: invalid internal value for enum: \d+ \(SQLSTATE 22P03\)"
    assert re.match(said, report.stopped["public.person"])
    with pytest.raises(StructureChanged, match=said):
        compared(sites, chosen=("public.person",))


@pytest.mark.long
def test_a_table_with_a_row_that_is_too_large_to_be_compared_is_left_out(pair: MakePair) -> None:
    sites = pair(
        "CREATE TABLE doc (id int PRIMARY KEY, body bytea)", "CREATE TABLE note (id int PRIMARY KEY)"
    )
    sites.london.run("INSERT INTO doc VALUES (1, convert_to(repeat('x', 600000000), 'UTF8'))")
    report = compared(sites)
    assert [each.table for each in report.tables] == ["public.note"]
    assert report.stopped["public.doc"].startswith("public.doc: london cannot read it: invalid memory alloc")
    assert report.stopped["public.doc"].endswith("A row is too large: shorten or delete it")


def test_one_table_alone_is_compared(pair: MakePair) -> None:
    sites = pair("CREATE TABLE one (id int PRIMARY KEY)", "CREATE TABLE two (id int PRIMARY KEY)")
    for table in ("one", "two"):
        behind_the_back(sites.london, f"INSERT INTO {table} VALUES (1)")
    assert [each.table for each in compared(sites, chosen=("public.two",)).differences] == ["public.two"]


def test_keys_of_many_forms_are_one_key(pair: MakePair) -> None:
    """F42: 1.0 and 1.00 are the same key of two different rows; texts, blanks and bytes are what they are."""
    sites = pair(
        'CREATE TABLE odd (n numeric, "two words" char(5), b bytea, at timestamptz, "select" int,'
        ' PRIMARY KEY (n, "two words", b, at))',
        r"""INSERT INTO odd VALUES (1.0, 'a', '\x00ff', '2026-01-01', 1), (2.50, 'b"''\', '', 'infinity', 2)""",
    )
    assert compared(sites).found == 0
    behind_the_back(sites.capetown, "UPDATE odd SET n = 1.00 WHERE n = 1")
    behind_the_back(sites.london, "DELETE FROM odd WHERE n = 2.5")
    assert kinds(compared(sites)) == {
        ("2026-01-01 00:00:00+00", r"\x00ff", "1", "a"): "content",
        ("infinity", r"\x", "2.5", "b\"'\\"): "only_target",
    }


def test_sites_without_a_common_history_are_not_compared(sites: Pair) -> None:
    known = sites.london.value("SELECT initialized::text FROM concord.link_state LIMIT 1")
    sites.london.run("UPDATE concord.link_state SET initialized = '{}'")
    try:
        with pytest.raises(NotInitialized):
            compared(sites)
    finally:
        sites.london.run(f"UPDATE concord.link_state SET initialized = '{known}'")


class busy:
    """Users write at both sites, and the links run, for as long as the block lasts."""

    def __init__(self, sites: Pair) -> None:
        self._sites, self._stop = sites, threading.Event()
        self._failed: list[BaseException] = []
        writers = [threading.Thread(target=self._write, args=(n,)) for n in range(2)]
        self._threads = [*writers, threading.Thread(target=self._link)]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failed

    def _guarded(self, steps: Iterator[None]) -> None:
        try:
            while not self._stop.is_set():
                next(steps)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self._failed.append(error)

    def _write(self, which: int) -> None:
        def steps() -> Iterator[None]:
            with self._sites.sites[which].log_in("an_application") as connection:
                for turn in range(10**9):
                    key = 1000 + (turn * 2 + which) % 3000
                    kind = turn % 10
                    if kind == 0:
                        connection.execute(b"DELETE FROM item WHERE id = %s", [key])
                    elif kind == 1:
                        connection.execute(
                            b"INSERT INTO item VALUES (%s, 'again', 1) ON CONFLICT DO NOTHING", [key - 20]
                        )
                    else:
                        connection.execute(
                            b"UPDATE item SET token = %s WHERE id = %s", [f"w{which} {turn}", key]
                        )
                    self._stop.wait(0.004)
                    yield

        self._guarded(steps())

    def _link(self) -> None:
        def steps() -> Iterator[None]:
            while True:
                self._sites.run("forward")
                yield
                self._sites.run("reverse")
                yield

        self._guarded(steps())
