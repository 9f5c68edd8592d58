"""The demo's report names what is not as promised, and is then no success."""

import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from concord.databases.postgresql.rows.content import Content
from concord.jobs.link import Direction, TableReport
from concord.versions.conflict import ConflictType
from demo import counters, proof, report
from demo.conflicts import print_conflicts
from demo.expectation import Contested, Expectation
from demo.outcome import Decided, LinkOutcome, RunOutcome
from demo.sites import CAPETOWN, LONDON, USERS

SAME = {"public.flights": Content("public.flights", 10, "1/2")}


def link(source, target, **counts):
    return LinkOutcome(source, target, (TableReport(table="public.flights", **counts),), {"write": 0.1}, 0)


def expected(forward=2, contested=(), alike=0, added=0):
    applied = {Direction.FORWARD: {"flights": forward}, Direction.REVERSE: {"flights": 1}}
    return Expectation(applied, {"flights": alike}, tuple(contested), {"flights": added}, {})


def run(conflicts=()):
    links = {
        Direction.FORWARD: link(LONDON, CAPETOWN, acquired=2, applied=2),
        Direction.REVERSE: link(CAPETOWN, LONDON, acquired=1, applied=1),
    }
    return RunOutcome(True, links, tuple(conflicts))


CONTESTED = Contested("flights", ("AA", 1), LONDON, {"dep_delay": 9}, {"dep_delay": 4})
DECIDED = Decided(
    table="public.flights",
    key=("AA", "1"),
    type=ConflictType.UPDATE_UPDATE,
    direction=Direction.FORWARD,
    reason="changed_at differs",
    winner=LONDON,
    loser=CAPETOWN,
    winner_row={"dep_delay": "9"},
    loser_row={"dep_delay": "4"},
    later_by=0.5,
)


def troubles(checks) -> list[str]:
    return [check.trouble for check in checks if not check.kept]


def test_a_run_that_applied_what_was_edited_is_as_promised():
    assert troubles(proof.applied_as_expected(run(), expected())) == []


def test_a_link_that_applied_too_few_rows_is_named_with_both_numbers():
    assert troubles(proof.applied_as_expected(run(), expected(forward=3))) == [
        "public.flights: 2 instead of 3"
    ]


def test_rows_that_the_sites_changed_alike_and_that_did_not_converge_are_named():
    assert troubles(proof.applied_as_expected(run(), expected(alike=1))) == ["public.flights: 0 instead of 1"]


def test_the_promises_say_where_every_edited_row_went():
    checks = proof.applied_as_expected(run(), expected(contested=[CONTESTED]))
    assert [check.promise for check in checks][:2] == [
        "2 rows edited in London = 2 applied in Cape Town + 0 alike + 0 lost",
        "2 rows edited in Cape Town = 1 applied in London + 0 alike + 1 lost",
    ]


def test_the_report_says_in_words_what_met_and_what_either_site_did():
    screen = StringIO()
    deleted = replace(DECIDED, type=ConflictType.UPDATE_DELETE, loser_row=None)
    print_conflicts(Console(file=screen, width=80), [DECIDED, deleted])
    said = screen.getvalue()
    assert re.search(r"updated at both +1 +1 +0 *\n", said)
    assert re.search(r"updated in London, deleted in Cape Town +1 +1 +0 *\n", said)
    assert re.search(r"flights AA 1 +dep_delay 9 +dep_delay 4 +London", said)
    assert re.search(r"flights AA 1 +dep_delay 9 +deleted +London", said)


def test_conflicts_as_the_edits_made_them_are_as_promised():
    assert troubles(proof.conflicts_as_expected(run([DECIDED]), expected(contested=[CONTESTED]))) == []


@pytest.mark.parametrize(
    ("found", "trouble"),
    [
        ([], "0 are in the log: 1 missing, 0 unexpected"),
        ([DECIDED, DECIDED], "2 are in the log: 0 missing, 0 unexpected"),
        ([replace(DECIDED, winner=CAPETOWN)], "not so: public.flights AA 1"),
        ([replace(DECIDED, loser_row={"dep_delay": "5"})], "not so: public.flights AA 1"),
        ([replace(DECIDED, loser_row=None)], "not so: public.flights AA 1"),
    ],
    ids=["lost", "twice", "earlier edit won", "other values kept", "row not kept"],
)
def test_a_conflict_that_is_not_as_the_edits_made_it_is_named(found, trouble):
    assert troubles(proof.conflicts_as_expected(run(found), expected(contested=[CONTESTED]))) == [trouble]


def test_sites_that_differ_are_named_by_table():
    other = {"public.flights": Content("public.flights", 10, "1/3")}
    checks = proof.sites_equal({LONDON: SAME, CAPETOWN: other}, SAME, expected())
    assert troubles(checks) == ["they differ in public.flights"]


def test_sites_that_lost_the_same_row_are_not_as_promised():
    checks = proof.sites_equal({LONDON: SAME, CAPETOWN: SAME}, SAME, expected(added=1))
    assert troubles(checks) == ["public.flights: 10 instead of 11"]


def test_a_run_of_which_a_link_is_missing_has_not_succeeded():
    half = RunOutcome(True, {Direction.FORWARD: run().links[Direction.FORWARD]}, ())
    assert not proof.run_succeeded(half, "first").kept


def test_the_verdict_is_good_only_when_every_promise_is_kept():
    screen = StringIO()
    console = Console(file=screen, width=120)
    assert report.print_verdict(console, [proof.Check("all is well")], 1.0)
    assert not report.print_verdict(
        console, [proof.Check("all is well"), proof.Check("rows agree", "they do not")], 1.0
    )
    assert "✗ rows agree: they do not" in screen.getvalue()
    assert "1 of 2 promises broken" in screen.getvalue()


@pytest.fixture
def tampered(scene) -> Callable[[str], None]:
    """Run a statement at Cape Town behind Concord's back."""

    def tamper(statement: str) -> None:
        with scene.sites[CAPETOWN].connect_as_superuser() as connection:
            connection.execute(statement)

    return tamper


def test_a_change_behind_concords_back_shows_in_the_content_hash(scene, configuration, tampered):
    before = proof.contents(scene.sites, configuration)[CAPETOWN]["public.airlines"]
    tampered(
        "SET session_replication_role = replica; UPDATE public.airlines SET name = 'tampered' WHERE carrier = 'AA'"
    )
    after = proof.contents(scene.sites, configuration)
    assert after[CAPETOWN]["public.airlines"].hash != before.hash
    assert "they differ in" in troubles(proof.sites_equal(after, scene.before, expected()))[0]
    assert after[LONDON]["public.airlines"] == before


def test_a_contested_row_that_is_not_as_its_last_user_left_it_is_named(scene):
    never = Contested("airlines", ("UA",), LONDON, {"name": "another name"}, None)
    check = proof.contested_rows_settled(scene.sites, Expectation({}, {}, (never,), {}, {}))
    assert check.trouble == "airlines UA at London; airlines UA at Cape Town"


def test_a_row_written_between_two_looks_at_the_counters_is_named(scene):
    before = counters.written(scene.sites)
    assert counters.difference(before, counters.written(scene.sites)) == {}
    with scene.sites[LONDON].connect(USERS) as connection:
        connection.execute(
            "UPDATE weather SET visib = 9 WHERE (origin, time_hour) = ('EWR', '2013-01-01 06:00Z')"
        )
    after = counters.written(scene.sites)
    written = counters.difference(before, after)
    assert written == {(LONDON, "public.weather"): 1, (LONDON, "concord.public.weather"): 1}
    idle = RunOutcome(True, {}, ())
    assert troubles(proof.nothing_written(idle, before, after)) != []
