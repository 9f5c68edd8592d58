"""A function of somebody else's is shown the version that both rows come from: it merges by itself (S4-152)."""

from dataclasses import replace
from itertools import product

import pytest

from concord.rules.policy import Policy
from concord.transmission import route
from concord.values.interval import Interval
from tests.given.fixtures import MakePair
from tests.given.merging_pair import STOCK, edit, losers, merging, stock
from tests.given.site import provision_site
from tests.given.two_sites import Pair, carried

ADDS = "custom(tests.given.custom_functions:adds_to_common, common)"
MERGES = "custom(tests.given.custom_functions:merges_columns, common)"
OLD = {
    "id": 1,
    "seats": 100,
    "price": "10.00",
    "title": "old",
    "seen": "2026-01-02 03:04:05.678901+00",
    "data": b"\x00\xff",
}


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return merging(pair(*STOCK), ADDS)


@pytest.mark.parametrize("first", ["forward", "reverse"])
@pytest.mark.parametrize("most", [0, 10_000])
def test_both_changes_are_added_to_the_row_that_both_come_from(
    sites: Pair, monkeypatch: pytest.MonkeyPatch, first: str, most: int
) -> None:
    """S4-152, S4-073: in either direction, and however many versions the changes may meet."""
    monkeypatch.setattr(route, "MOST_UNDER_LOCK", most)
    edit(sites, 1, "seats = seats - 3", "seats = seats + 10, data = NULL")
    sites.settle(first=first)
    assert stock(sites, "seats, title", "id = 1") == [(1, 107, str(sorted(OLD.items())))]
    assert losers(sites, 1).keys() == {"london", "capetown"}
    assert [report.total("acquired") for report in sites.settle()] == [0, 0, 0, 0]


def test_where_no_row_is_common_the_function_is_told_of_none(sites: Pair) -> None:
    """S4-152: two inserts of one key, and a row that one side deleted."""
    sites.london.run("INSERT INTO stock (id, title) VALUES (30, 'london')", "DELETE FROM stock WHERE id = 2")
    sites.capetown.run(
        "INSERT INTO stock (id, title) VALUES (30, 'capetown')", "UPDATE stock SET seats = 1 WHERE id = 2"
    )
    sites.settle()
    assert stock(sites, "title", "id IN (2, 30)") == [(2, "old"), (30, "capetown")]
    said = {each["key"][0]: each["reason"] for each in sites.conflicts()}
    assert said == dict.fromkeys(("2", "30"), f"{ADDS}: undecided; changed_at differs")


def test_a_function_can_do_all_that_merging_by_columns_does(pair: MakePair) -> None:
    """S4-152: every choice of columns that two sites may change, beside Concord's own resolver."""
    made = pair(
        "CREATE TABLE own (id int PRIMARY KEY, a int, b text, c numeric)",
        "CREATE TABLE theirs (id int PRIMARY KEY, a int, b text, c numeric)",
        *(
            f"INSERT INTO {name} SELECT n, 0, '0', 0 FROM generate_series(0, 63) n"
            for name in ("own", "theirs")
        ),
    )
    policies = {"public.own": ("merge_columns",), "public.theirs": (MERGES,)}
    made = replace(
        made,
        tables=tuple(
            each.model_copy(update={"policy": Policy(resolvers=policies[each.name])}) for each in made.tables
        ),
    )
    for site in made.sites:
        provision_site(site, made.tables)
    for number, (london, capetown) in enumerate(product(range(8), range(8))):
        for site, chosen in zip(made.sites, (london, capetown), strict=True):
            changed = ", ".join(
                f"{column} = '{bit + 1 + (site is made.london)}'"
                for bit, column in enumerate("abc")
                if chosen >> bit & 1
            )
            if changed:
                site.run(
                    *(f"UPDATE {table} SET {changed} WHERE id = {number}" for table in ("own", "theirs"))
                )
    made.settle()
    assert made.equal
    assert made.london.rows("SELECT * FROM own EXCEPT SELECT * FROM theirs") == []


def test_a_plan_counts_it_as_a_merge_and_writes_nothing(sites: Pair) -> None:
    edit(sites, 1, "seats = 90", "seats = 95")
    report = carried(sites.run("forward", plan_only=True))
    assert (report.acquired, report.merged, report.conflicts) == (1, 1, 1)
    assert sites.conflicts() == []


def test_a_backfill_shows_it_as_well(sites: Pair) -> None:
    edit(sites, 1, "seats = 90", "seats = 95")
    sites.run("forward", interval=Interval(start=0, end=2**62))
    sites.settle()
    assert stock(sites, "seats", "id = 1") == [(1, 85)]
