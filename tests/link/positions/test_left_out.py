"""Positions that a run does not move stay: those of tables and links that left the configuration, and of plans."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.given.fixtures import MakePair
from tests.given.tombstones import cleaned, held
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, isbn text UNIQUE)",
    "INSERT INTO book SELECT n, 'book ' || n, 'isbn ' || n FROM generate_series(1, 20) n",
)
SHELF = ("CREATE TABLE shelf (id int PRIMARY KEY, place text)", "INSERT INTO shelf VALUES (1, 'attic')")


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK, *SHELF)


def only(sites: Pair, name: str) -> Pair:
    """The same pair, configured with one of its tables."""
    tables = tuple(table for table in sites.tables if table.name == name)
    return Pair(sites.london, sites.capetown, tables, sites.spark)


def test_a_table_that_left_the_configuration_keeps_its_place_and_loses_nothing(sites: Pair) -> None:
    """Rule 1: positions move only for the tables that a run carries."""
    sites.london.run("UPDATE shelf SET place = 'cellar'")
    only(sites, "public.book").settle()
    sites.settle()
    assert sites.capetown.rows("SELECT place FROM shelf") == [("cellar",)]


def test_a_link_that_left_the_configuration_still_holds_tombstones_back(sites: Pair) -> None:
    """Rule 10: the site remembers it, and it may come back."""
    sites.london.run("DELETE FROM book WHERE id = 5")
    sites.settle()
    sites.london.run(
        "INSERT INTO concord.link_state (link, role, peer, initialized, history)"
        " SELECT 'elsewhere/forward', 'source', 'newyork', initialized, jsonb_build_array(history -> -1)"
        " FROM concord.link_state WHERE link = 'london_capetown/forward'"
    )
    (report,) = [each for each in cleaned(sites) if (each.site, each.table) == ("london", "public.book")]
    assert [each.link for each in report.held_back] == ["elsewhere/forward"]
    assert held(sites.london) == [5]


@pytest.mark.parametrize("first", ["source", "target"])
def test_a_run_that_overtakes_a_plan_is_not_taken_for_a_restored_backup(
    sites: Pair, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Both ends are asked at once. The one that answers first has told a heartbeat that is older than the other
    one's memory of it by the time that it answers."""
    from concord.transmission import opening  # noqa: PLC0415 - the function is replaced in its module

    at_both, asked = opening.at_both, []

    def overtaken(source: Callable[[], Any], target: Callable[[], Any]) -> tuple[Any, Any]:
        asked.append(first)
        if len(asked) == 1:  # of the tables
            return at_both(source, target)
        monkeypatch.setattr(opening, "at_both", at_both)
        early = (source if first == "source" else target)()
        sites.run("forward")
        sites.run("reverse")
        return (early, target()) if first == "source" else (source(), early)

    monkeypatch.setattr(opening, "at_both", overtaken)
    assert sites.run("forward", plan_only=True).plan_only
    assert len(asked) == 2
