"""Two sites that did the very same thing without knowing of each other. Nothing is lost, logged or waited for, and
no run counts it as lost (rule 4). The vectors are united, so that it is found once."""

from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest

from concord.databases.postgresql.upkeep.decide import Desk
from concord.rules.policy import Policy
from tests.given.at_step import At
from tests.given.bare_sites import Bare
from tests.given.filtered_pair import filtered
from tests.given.fixtures import MakeNetwork, MakePair
from tests.given.many_sites import Network, ring
from tests.given.mapped_pair import begin_mapped, configured
from tests.given.merging_pair import STOCK, merging
from tests.given.site import provision_site
from tests.given.two_sites import Pair, carried, declare_equal

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("judged")]

DELETE = "DELETE FROM stock WHERE id = 1"
UPDATE = "UPDATE stock SET seats = 90, title = 'new', data = NULL WHERE id = 2"
INSERT = "INSERT INTO stock VALUES (50, 7, 1.50, 'both', NULL, '\\x01')"
THE_SAME = (DELETE, UPDATE, INSERT)


def asked(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """A function that nobody should ask."""
    raise AssertionError(f"asked about {conflicts.num_rows} rows that are alike")


RESOLVERS = (
    ("latest_timestamp",),
    ("earliest_timestamp",),
    ("source_wins",),
    ("delete_wins", "maximum(seats)"),
    ("hold",),
    ("publisher_wins_and_reinitialize",),
    ("average(seats)",),
    ("merge_columns",),
    ("custom(tests.link.conflicts.test_same_thing:asked)",),
    ("earliest_timestamp", "custom(tests.link.conflicts.test_same_thing:asked, adds_up)"),
)
ADDS_SEATS = "custom(tests.given.custom_functions:adds_seats, adds_up)"


def deciding(made: Pair, *resolvers: str) -> Pair:
    """Both sites are brought up to what the resolvers of `stock` need; London is the source."""
    pair = merging(made, *resolvers)
    policy = Policy(resolvers=resolvers, places={"london": 0, "capetown": -1})
    tables = [
        table.model_copy(update={"policy": policy}) if table.name == "public.stock" else table
        for table in pair.tables
    ]
    return replace(pair, tables=tuple(tables))


def waiting(pair: Pair) -> int:
    return sum(site.value("SELECT count(*) FROM concord.waiting") for site in pair.sites)


def decide(pair: Pair, choice: str) -> None:
    """Ada's answer about the one row that waits."""
    with closing(Desk(pair.job())) as desk:
        (row,) = desk.entries(10)
        desk.decide(row, choice, "Ada")


def settled_without_a_loss(pair: Pair, first: str = "forward", met: int = 3) -> None:
    """One link finds `met` rows alike; in the end every site holds one version, and nobody logged anything."""
    reports = pair.settle(first=first)
    assert carried(reports[0]).converged == met
    for report in reports:
        assert all(table.adds_up for table in report.tables)
        assert [report.total(what) for what in ("conflicts", "lost", "held", "merged", "reinitializing")] == [
            0
        ] * 5
    assert [report.total("acquired") for report in reports[2:]] == [0, 0]
    assert pair.conflicts() == []
    assert waiting(pair) == 0
    assert pair.equal
    versions = [
        site.rows('SELECT id, origin, changed_at, vector FROM concord."public.stock"') for site in pair.sites
    ]
    assert sorted(map(str, versions[0])) == sorted(map(str, versions[1]))


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("resolvers", RESOLVERS, ids=" ".join)
def test_what_both_sites_did_alike_converges_under_every_resolver(
    pair: MakePair, resolvers: tuple[str, ...], direction: str
) -> None:
    sites = deciding(pair(*STOCK), *resolvers)
    for site in sites.sites:
        site.run(*THE_SAME)
    settled_without_a_loss(sites, direction)


@pytest.mark.parametrize(
    "resolver", ["latest_timestamp", "hold", "custom(tests.link.conflicts.test_same_thing:asked)"]
)
def test_a_plan_foresees_no_conflict(pair: MakePair, resolver: str) -> None:
    sites = deciding(pair(*STOCK), resolver)
    for site in sites.sites:
        site.run(*THE_SAME)
    sites.capetown.run("UPDATE stock SET title = 'another' WHERE id = 3")
    planned = carried(sites.run(plan_only=True), "public.stock")
    assert (planned.acquired, planned.converged, planned.conflicts) == (3, 3, 0)


def test_the_same_edit_that_comes_between_detection_and_the_write_is_found_under_lock(pair: MakePair) -> None:
    sites = pair(*STOCK)
    sites.london.run(*THE_SAME)
    report = sites.run(at=At("lock", lambda: sites.capetown.run(*THE_SAME)))
    assert (carried(report).converged, carried(report).conflicts) == (3, 0)
    sites.settle()
    assert sites.conflicts() == []
    assert sites.equal


def test_rows_that_differ_in_one_column_are_in_conflict_as_ever(pair: MakePair) -> None:
    sites = pair(*STOCK)
    sites.london.run(UPDATE, "UPDATE stock SET price = 1.0 WHERE id = 3")
    sites.capetown.run(UPDATE.replace("NULL", "'\\x00'"), "UPDATE stock SET price = 1.1 WHERE id = 3")
    sites.run()
    sites.settle()
    assert len(sites.conflicts()) == 2


def test_sites_that_add_the_same_number_have_not_done_the_same_thing(pair: MakePair) -> None:
    """100 + 5 + 5: a resolver that adds up judges what both did, not what they left."""
    sites = deciding(pair(*STOCK), "additive(seats)")
    for site in sites.sites:
        site.run("UPDATE stock SET seats = seats + 5 WHERE id = 2", DELETE)
        site.run("UPDATE stock SET title = 'no number' WHERE id = 3")
    report = sites.run()
    assert (carried(report).converged, carried(report).merged) == (2, 1)
    sites.settle()
    assert sites.equal
    assert sites.london.value("SELECT seats FROM stock WHERE id = 2") == 110
    assert {entry["key"][0] for entry in sites.conflicts()} == {"2"}
    assert len(sites.conflicts()) == 2, "each number stands in the ledger, that either can be brought back"


def test_where_a_resolver_that_adds_up_does_not_know_the_common_version_the_loser_is_logged(
    pair: MakePair,
) -> None:
    """One of two additions is lost, although the rows are alike."""
    sites = deciding(pair(*STOCK), "additive(seats)")
    for site in sites.sites:
        site.run("INSERT INTO stock (id, seats) VALUES (60, 5)")
    sites.settle()
    (entry,) = sites.conflicts()
    assert (entry["winner_row"], entry["reason"].partition(";")[0]) == (
        entry["loser_row"],
        "additive(seats): the common version is not known",
    )


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_function_that_adds_up_is_asked_about_rows_that_are_alike(pair: MakePair, direction: str) -> None:
    """But for deleted ones. A conflict that it leaves undecided is lost by one site, and logged."""
    sites = deciding(pair(*STOCK), ADDS_SEATS)
    for site in sites.sites:
        site.run("UPDATE stock SET seats = seats + 5 WHERE id = 2", DELETE)
        site.run("UPDATE stock SET title = 'no number' WHERE id = 3")
    planned = carried(sites.run(direction, plan_only=True))
    assert (planned.converged, planned.merged, planned.conflicts) == (1, 1, 2)
    report = carried(sites.run(direction))
    assert (report.converged, report.merged, report.conflicts) == (1, 1, 2)
    sites.settle(first="reverse" if direction == "forward" else "forward")
    assert sites.equal
    assert sites.london.rows("SELECT id, seats FROM stock WHERE id IN (2, 3) ORDER BY 1") == [
        (2, 110),
        (3, 100),
    ]
    assert [(entry["key"][0], entry["resolver"]) for entry in sites.conflicts()] == [
        *[("2", ADDS_SEATS)] * 2,
        ("3", "latest_timestamp"),
    ]


def test_a_function_that_adds_up_is_asked_about_what_becomes_alike_before_the_write(pair: MakePair) -> None:
    sites = deciding(pair(*STOCK), ADDS_SEATS)
    more = "UPDATE stock SET seats = seats + 5 WHERE id = 2"
    sites.london.run(more)
    report = carried(sites.run(at=At("lock", lambda: sites.capetown.run(more))))
    assert (report.converged, report.merged) == (0, 1)
    sites.settle()
    assert sites.equal
    assert sites.london.value("SELECT seats FROM stock WHERE id = 2") == 110


def test_private_columns_count_and_columns_that_a_site_keeps_for_itself_do_not(pair: MakePair) -> None:
    """No site can compare columns that do not travel: each keeps its own, so that nothing of them is lost
    either."""
    made = pair(
        "CREATE TABLE person (id int PRIMARY KEY, name text, passport text, desk text)",
        "INSERT INTO person SELECT n, 'anna', 'GB', 'none' FROM generate_series(1, 5) n",
    )
    (table,) = made.tables
    columns = ("id", "name", "passport")
    sites = replace(
        made, tables=(table.model_copy(update={"columns": columns, "private": {"passport": "dropped"}}),)
    )
    for site in sites.sites:
        provision_site(site, sites.tables)
    declare_equal(sites.job())
    for site in sites.sites:
        site.run(
            f"UPDATE person SET name = 'eva', passport = '{site.name}' WHERE id = 1",
            f"UPDATE person SET name = 'eva', desk = '{site.name}' WHERE id = 2",
        )
    sites.settle()
    assert {entry["key"][0] for entry in sites.conflicts()} == {"1"}
    assert [site.value("SELECT desk FROM person WHERE id = 2") for site in sites.sites] == [
        "london",
        "capetown",
    ]


def test_what_two_filtered_sites_did_alike_converges(pair: MakePair) -> None:
    sites = filtered(
        pair(
            "CREATE TABLE member (id int PRIMARY KEY, name text, region int)",
            "INSERT INTO member SELECT n, 'anna', 1 FROM generate_series(1, 5) n",
        )
    )
    declare_equal(sites.job())
    for site in sites.sites:
        site.run(
            "DELETE FROM member WHERE id = 1",
            "UPDATE member SET name = 'eva' WHERE id = 2",
            "UPDATE member SET region = 2 WHERE id = 3",  # leaves the filter at both
            "INSERT INTO member VALUES (9, 'new', 1)",
        )
    reports = sites.settle()
    assert sum(report.total("conflicts") for report in reports) == 0
    assert sites.conflicts() == []
    assert carried(reports[0]).converged == 3
    assert [report.total("acquired") for report in reports[2:]] == [0, 0]
    ours, theirs = (site.rows("SELECT * FROM member ORDER BY id") for site in sites.sites)
    assert ours == theirs


def test_a_held_row_that_the_other_site_makes_alike_waits_no_longer(pair: MakePair) -> None:
    sites = deciding(pair(*STOCK), "hold")
    sites.london.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    sites.capetown.run("UPDATE stock SET title = 'theirs' WHERE id = 2")
    sites.settle()
    assert waiting(sites) == 2
    sites.capetown.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    sites.settle(first="reverse")
    assert waiting(sites) == 0
    assert sites.conflicts() == []
    assert sites.equal


def test_a_decision_between_rows_that_are_alike_by_now_logs_no_loser(pair: MakePair) -> None:
    sites = deciding(pair(*STOCK), "hold")
    sites.london.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    sites.capetown.run("UPDATE stock SET title = 'theirs' WHERE id = 2")
    sites.run()
    sites.capetown.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    decide(sites, "target")
    sites.settle()
    assert sites.conflicts() == []
    assert waiting(sites) == 0
    assert sites.equal


@pytest.mark.parametrize("choice", ["source", "target"])
def test_a_decision_between_rows_that_are_alike_logs_the_addition_that_is_lost(
    pair: MakePair, choice: str
) -> None:
    """Nobody knows what the two numbers were added to: a person is asked, and one of the two additions is lost."""
    sites = deciding(pair(*STOCK), "additive(seats)", "hold")
    for site in sites.sites:
        site.run("INSERT INTO stock (id, seats) VALUES (60, 5)")
    assert carried(sites.run()).held == 1
    decide(sites, choice)
    sites.settle()
    (entry,) = sites.conflicts()
    assert entry["winner_row"] == entry["loser_row"]
    assert (entry["key"], entry["reason"]) == (["60"], f"Ada decided: {choice}")
    assert waiting(sites) == 0
    assert sites.equal


def test_a_decision_between_rows_that_are_alike_but_for_no_number_logs_no_loser(pair: MakePair) -> None:
    """The numbers stand as both sites knew them: nothing was added."""
    sites = deciding(pair(*STOCK), "additive(seats)", "hold")
    sites.london.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    sites.capetown.run("UPDATE stock SET title = 'theirs' WHERE id = 2")
    assert carried(sites.run()).held == 1
    sites.capetown.run("UPDATE stock SET title = 'ours' WHERE id = 2")
    decide(sites, "target")
    sites.settle()
    assert sites.conflicts() == []
    assert sites.equal


def test_a_refused_row_that_is_alike_by_now_waits_no_longer(pair: MakePair) -> None:
    sites = pair(*STOCK)
    sites.capetown.run("ALTER TABLE stock ADD CONSTRAINT few CHECK (seats < 1000)")
    sites.london.run("UPDATE stock SET seats = 5000 WHERE id = 2")
    assert carried(sites.run()).quarantined == 1
    sites.capetown.run("ALTER TABLE stock DROP CONSTRAINT few", "UPDATE stock SET seats = 5000 WHERE id = 2")
    assert (carried(sites.run()).retried, carried(sites.run("reverse")).conflicts) == (1, 0)
    sites.settle()
    assert waiting(sites) == 0
    assert sites.conflicts() == []
    assert sites.equal


def quiet(sites: Network) -> None:
    before = {site.name: site.stored for site in sites.sites}
    assert not any(report.total("acquired") for report in sites.round())
    written = {table for site in sites.sites for table in site.written_since(before[site.name])}
    assert written <= {"concord.site", "concord.synchronization", "concord.link_state"}


def test_three_sites_in_a_ring_that_all_did_the_same_come_to_rest(network: MakeNetwork) -> None:
    sites = network(ring("london", "capetown", "oslo"), *STOCK)
    for site in sites.sites:
        site.run(*THE_SAME)
    sites.settle()
    assert sites.conflicts() == []
    assert sites.equal
    quiet(sites)


def test_in_a_ring_the_one_that_did_another_thing_wins_or_loses_as_ever(network: MakeNetwork) -> None:
    """Two alike and one that differs: whoever loses to it, or it to them, stands in the log with its own row."""
    sites = network(ring("london", "capetown", "oslo"), *STOCK)
    for site in sites.sites:
        site.run(UPDATE if site.name != "oslo" else UPDATE.replace("'new'", "'oslo'"))
    sites.settle()
    assert sites.equal
    quiet(sites)
    logged = sites.conflicts()
    assert logged
    assert all(entry["winner_row"] != entry["loser_row"] for entry in logged)


def test_the_same_edits_at_both_sites_before_every_run_are_no_oscillation(pair: MakePair) -> None:
    """F95: nothing is rewritten, and no conflict in the log says that two sites edited."""
    sites = pair(*STOCK)
    for turn in islice(range(100), 14):
        for site in sites.sites:
            site.run(f"UPDATE stock SET title = 'turn {turn}' WHERE id = 2")
        for direction in ("forward", "reverse"):
            assert not sites.run(direction).stopped
    assert sites.conflicts() == []


MAPPED = """
- table: public.person
  mappings: {capetown: {split: {passport: {into: [country, number], lengths: [2, 6]}}}}
"""


@pytest.fixture
def mapped(sites: Bare, tmp_path: Path, request: pytest.FixtureRequest) -> Pair:
    london, capetown = sites.sites
    london.run("CREATE TABLE person (id int PRIMARY KEY, passport text)")
    capetown.run("CREATE TABLE person (id int PRIMARY KEY, country text, number text)")
    london.run("INSERT INTO person VALUES (1, 'ZA123456'), (2, 'ZA123456')")
    capetown.run("INSERT INTO person VALUES (1, 'ZA', '123456'), (2, 'ZA', '123456')")
    tables = configured(MAPPED, tmp_path)
    return begin_mapped(london, capetown, tables, lambda: request.getfixturevalue("spark"))


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_rows_that_two_sites_keep_differently_are_alike_in_canonical_form(
    mapped: Pair, direction: str
) -> None:
    mapped.london.run(
        "UPDATE person SET passport = 'GB987654' WHERE id = 1",
        "DELETE FROM person WHERE id = 2",
        "INSERT INTO person VALUES (3, 'NL111111'), (4, 'NL222222')",
    )
    mapped.capetown.run(
        "UPDATE person SET country = 'GB', number = '987654' WHERE id = 1",
        "DELETE FROM person WHERE id = 2",
        "INSERT INTO person VALUES (3, 'NL', '111111'), (4, 'NL', '333333')",
    )
    planned = carried(mapped.run(direction, plan_only=True))
    assert (planned.converged, planned.conflicts) == (3, 1)
    reports = mapped.settle(first=direction)
    assert (carried(reports[0]).converged, carried(reports[0]).conflicts) == (3, 1)
    assert {entry["key"][0] for entry in mapped.conflicts()} == {"4"}
    assert [report.total("acquired") for report in reports[2:]] == [0, 0]
