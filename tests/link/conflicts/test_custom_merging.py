"""Conflicts that somebody else's function decides, asked by the driver or by Spark: choices, new rows, what is left."""

from dataclasses import dataclass, replace

import pytest

from concord.messages.errors import ResolverFailed
from concord.values.interval import Interval
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.merging_pair import STOCK, edit, losers, merging, stock
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("judged")]

CUSTOM = "custom(tests.given.custom_functions:{})"


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*STOCK)


def test_what_merges_arrives_through_spark(sites: Pair) -> None:
    sites = merging(sites, "additive(seats)", "merge_columns")
    edit(sites, 1, "seats = seats - 3", "seats = seats + 10")
    edit(sites, 2, "title = 'london'", "price = 11.00, data = NULL")
    assert carried(sites.run("forward")).merged == 2
    sites.run("reverse")
    assert stock(sites, where="id < 3") == [(1, 107, "10.00", "old"), (2, 100, "11.00", "london")]
    assert len(sites.conflicts()) == 4


def test_a_plan_counts_a_merge_and_writes_nothing(sites: Pair) -> None:
    sites = merging(sites, "additive(seats)")
    edit(sites, 1, "seats = 1", "seats = 2")
    report = carried(sites.run("forward", plan_only=True))
    assert (report.acquired, report.applied, report.merged, report.conflicts) == (1, 1, 1, 1)
    assert sites.conflicts() == []


def test_a_function_chooses_merges_or_leaves_it_to_the_next(sites: Pair) -> None:
    """S4-048 to S4-053, S4-056"""
    sites = merging(sites, CUSTOM.format("by_title"), "earliest_timestamp")
    for key, title in enumerate(("source", "target", "undecided", "both"), start=1):
        edit(sites, key, f"title = '{title}', seats = 1", f"title = 'c{key}', seats = 2")
    sites.run("forward")
    sites.run("reverse")
    assert stock(sites, where="id < 5") == [
        (1, 1, "10.00", "source"),
        (2, 2, "10.00", "c2"),
        (3, 1, "10.00", "undecided"),
        (4, 1, "12.50", "both and c4"),
    ]
    assert {site: row["title"] for site, row in losers(sites, 4).items()} == {
        "london": "both",
        "capetown": "c4",
    }
    reasons = {each["key"][0]: (each["resolver"], each["reason"]) for each in sites.conflicts()}
    by_title = CUSTOM.format("by_title")
    assert reasons["1"] == (by_title, "took the source's row")
    assert reasons["3"] == ("earliest_timestamp", f"{by_title}: undecided; changed_at differs")
    assert reasons["4"] == (by_title, "made a new row")
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]


def test_a_function_is_asked_about_what_the_resolver_before_it_cannot_tell_apart(sites: Pair) -> None:
    sites = merging(sites, "maximum(seats)", CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'target', seats = 3", "title = 'c', seats = 2")
    edit(sites, 2, "title = 'both', seats = 3", "title = 'c', seats = 3")
    sites.run("forward")
    sites.run("reverse")
    assert stock(sites, "seats, title", "id < 3") == [(1, 3, "target"), (2, 3, "both and c")]
    by_key = {each["key"][0]: each["resolver"] for each in sites.conflicts()}
    assert by_key == {"1": "maximum(seats)", "2": CUSTOM.format("by_title")}


def test_a_function_that_fails_stops_its_table_alone(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("breaks"))
    edit(sites, 1, "seats = 1", "seats = 2")
    sites.london.run("UPDATE plain SET v = 'new'")
    report = sites.run("forward")
    assert report.stopped == {
        "public.stock": "public.stock: 1 conflict has no decision: custom(tests.given.custom_functions:breaks) failed:"
        " ArithmeticError: no idea of 1. Mend the function; nothing of the table was written"
    }
    assert sites.capetown.value("SELECT v FROM plain") == "new"
    assert sites.capetown.value("SELECT seats FROM stock WHERE id = 1") == 2
    assert sites.conflicts() == []


def test_a_function_that_is_not_there_stops_its_table_before_it_is_needed(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("nobody_wrote_it"))
    sites.london.run("UPDATE stock SET seats = 1 WHERE id = 1")
    (stopped,) = sites.run("forward").stopped.values()
    assert stopped.startswith(
        "public.stock: custom(tests.given.custom_functions:nobody_wrote_it) cannot be imported: "
    )
    assert sites.capetown.value("SELECT seats FROM stock WHERE id = 1") == 100
    only = replace(sites, tables=tuple(table for table in sites.tables if table.policy.asks))
    with pytest.raises(ResolverFailed, match="Install it where the Spark driver and its executors run"):
        only.run("forward")


def test_a_row_that_was_edited_meanwhile_goes_back_to_the_function(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'one'")
    sites.run(
        "forward", at=At("write", lambda: sites.capetown.run("UPDATE stock SET title = 'two' WHERE id = 1"))
    )
    sites.run("reverse")
    assert stock(sites, "title", "id = 1") == [(1, "both and two")]
    assert {row["title"] for row in losers(sites, 1).values()} == {"both", "two"}


@dataclass
class EveryTime(At):
    """Acts whenever the link reaches the step."""

    def __call__(self, step: str) -> None:
        if step == self.step:
            self.reached += 1
            self.act()


def test_a_row_that_is_edited_all_the_while_is_left_to_the_rest_of_the_chain(sites: Pair) -> None:
    sites = merging(sites, CUSTOM.format("by_title"))
    edit(sites, 1, "title = 'both'", "title = 'one'")
    sites.london.run("UPDATE plain SET v = 'new'")
    touch = EveryTime("write", lambda: sites.capetown.run("UPDATE stock SET seats = seats + 1 WHERE id = 1"))
    sites.run("forward", at=touch)
    assert sites.capetown.rows("SELECT title, seats FROM stock WHERE id = 1") == [("one", 103)]
    assert sites.capetown.value("SELECT v FROM plain") == "new"
    (conflict,) = sites.conflicts()
    said = f"{CUSTOM.format('by_title')}: not asked; changed_at differs"
    assert (conflict["resolver"], conflict["reason"]) == ("latest_timestamp", said)


@pytest.mark.parametrize("backfilled", [False, True])
def test_a_conflict_with_what_the_source_has_refused_goes_to_the_function(
    sites: Pair, backfilled: bool
) -> None:
    """Cape Town has told its version, so that it is no candidate; yet London has not adopted it."""
    sites = merging(sites, CUSTOM.format("by_title"))
    sites.london.run("ALTER TABLE stock ADD CONSTRAINT cheap CHECK (price < 100)")
    sites.capetown.run("UPDATE stock SET price = 500, title = 'c' WHERE id = 1")
    sites.run("reverse")
    since = sites.capetown.value('SELECT max(changed_at) + 1 FROM concord."public.stock"')
    sites.london.run("UPDATE stock SET title = 'both' WHERE id = 1", "UPDATE plain SET v = 'new'")
    edit(sites, 2, "title = 'target'", "title = 'theirs'")
    sites.run("forward", interval=Interval(start=since, end=2**62) if backfilled else None)
    sites.run("reverse")
    assert stock(sites, "price::text, title", "id < 3") == [
        (1, "12.50", "both and c"),
        (2, "10.00", "theirs"),
    ]
    assert sites.london.value("SELECT count(*) FROM concord.waiting") == 0
    assert sites.capetown.value("SELECT v FROM plain") == "new"
