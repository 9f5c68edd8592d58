"""An update that finds neither row nor tombstone at the target is inserted, counted and told: somebody altered the
target behind capture's back (S0-48, T10)."""

import logging
from dataclasses import replace

import pytest

from tests.given.fixtures import MakePair
from tests.given.site import provision_site
from tests.given.two_sites import Pair, carried

pytestmark = pytest.mark.spark

BOOK = (
    "CREATE TABLE book (id int PRIMARY KEY, title text, region int DEFAULT 1)",
    "INSERT INTO book SELECT n, 'book ' || n FROM generate_series(1, 20) n",
)


def behind_the_back(sites: Pair, statement: str) -> None:
    """As somebody does it whom capture takes for a link."""
    sites.capetown.as_applier("SET LOCAL concord.applying = 'on'", statement)


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    """Books 1 to 20 are common history; 30 was inserted since, and 31 deleted since."""
    made = pair(*BOOK)
    made.london.run("INSERT INTO book VALUES (30, 'new'), (31, 'gone')")
    made.settle()
    made.london.run("DELETE FROM public.book WHERE id = 31")
    made.settle()
    return made


@pytest.mark.parametrize("spark_from", [0, 10**9], ids=["by Spark", "by the driver"])
def test_updates_of_rows_that_went_behind_captures_back_are_counted_and_named(
    sites: Pair, spark_from: int, caplog: pytest.LogCaptureFixture
) -> None:
    behind_the_back(sites, "DELETE FROM public.book WHERE id IN (1, 2, 30)")
    sites.london.run("UPDATE book SET title = 'edited' WHERE id IN (1, 3, 30)")
    with caplog.at_level(logging.INFO, logger="concord.link"):
        report = sites.run(spark_from=spark_from)
    found = carried(report)
    assert (found.acquired, found.applied, found.inserted_for_update) == (3, 3, 2)
    assert found.adds_up
    (event,) = [each.getMessage() for each in caplog.records if "found no row" in each.getMessage()]
    for said in ("capetown", "public.book", '"1"', '"30"'):
        assert said in event
    assert report.total("conflicts") == 0
    assert "keys_inserted" not in found.model_dump(), "no key travels to Airflow or the repository"
    sites.settle()
    rows = [site.rows("SELECT * FROM book WHERE id <> 2 ORDER BY 1") for site in sites.sites]
    assert rows[0] == rows[1]


def test_inserts_deletes_and_what_comes_back_after_a_delete_are_no_conversion(sites: Pair) -> None:
    sites.london.run(
        "INSERT INTO book VALUES (31, 'again'), (40, 'newer')",
        "UPDATE book SET title = 'edited at once' WHERE id = 40",
        "UPDATE book SET id = 50 WHERE id = 5",
        "DELETE FROM book WHERE id = 6",
        "UPDATE book SET title = 'edited' WHERE id = 7",
    )
    for report in sites.settle():
        assert report.total("inserted_for_update") == 0
    assert sites.equal


def test_of_a_private_key_no_message_tells(sites: Pair, caplog: pytest.LogCaptureFixture) -> None:
    (table,) = sites.tables
    hidden = replace(sites, tables=(table.model_copy(update={"private": {"id": "hashed"}}),))
    for site in hidden.sites:
        provision_site(site, hidden.tables)
    behind_the_back(hidden, "DELETE FROM public.book WHERE id = 19")
    hidden.london.run("UPDATE book SET title = 'edited' WHERE id = 19")
    with caplog.at_level(logging.INFO, logger="concord.link"):
        assert carried(hidden.run()).inserted_for_update == 1
    (event,) = [each.getMessage() for each in caplog.records if "found no row" in each.getMessage()]
    assert '"19"' not in event
