"""Positions that a run does not move stay: those of tables and links that left the configuration, and of plans."""

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
