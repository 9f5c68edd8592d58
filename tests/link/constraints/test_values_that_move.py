"""Unique values that move between rows arrive, and one that two sites use stays with one row."""

import pytest

from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, isbn text UNIQUE)",
    "INSERT INTO book SELECT n, 'book ' || n, 'isbn ' || n FROM generate_series(1, 20) n",
)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def books(site: Site) -> list[tuple[int, str]]:
    return [(key, isbn) for key, isbn in site.rows("SELECT id, isbn FROM book WHERE id < 4 ORDER BY id")]


@pytest.mark.parametrize("key", [-1, 99])
def test_a_row_takes_its_unique_value_along_when_its_key_changes(sites: Pair, key: int) -> None:
    """S1-29, F37: the new key may sort before or after the old one."""
    sites.london.run(f"UPDATE book SET id = {key} WHERE id = 3")
    sites.settle()
    assert sites.equal
    assert sites.capetown.rows(f"SELECT isbn FROM book WHERE id = {key}") == [("isbn 3",)]
    assert sites.conflicts() == []


def test_unique_values_swapped_and_passed_on_between_rows_arrive(sites: Pair) -> None:
    """F38: judged against the final state only."""
    sites.london.run(
        "UPDATE book SET isbn = 'parked' WHERE id = 1",
        "UPDATE book SET isbn = 'isbn 1' WHERE id = 2",
        "UPDATE book SET isbn = 'isbn 2' WHERE id = 3",
        "UPDATE book SET isbn = 'isbn 3' WHERE id = 1",
    )
    sites.settle()
    assert sites.equal
    assert books(sites.capetown) == [(1, "isbn 3"), (2, "isbn 1"), (3, "isbn 2")]
    assert sites.conflicts() == []


def test_one_unique_value_used_at_both_sites_stays_with_the_later_row_and_the_report_counts_it(
    sites: Pair,
) -> None:
    """F39, through Spark; all cases stand in test_uniqueness."""
    sites.london.run("INSERT INTO book VALUES (100, 'ours', 'isbn x')")
    sites.capetown.run("INSERT INTO book VALUES (101, 'theirs', 'isbn x')")
    report = carried(sites.run())
    assert (report.applied, report.conflicts, report.adds_up) == (1, 1, True)
    sites.settle()
    assert sites.equal
    assert sites.london.rows("SELECT id, isbn FROM book WHERE id > 99 ORDER BY 1") == [
        (100, None),
        (101, "isbn x"),
    ]
    assert [conflict["type"] for conflict in sites.conflicts()] == ["uniqueness"]
