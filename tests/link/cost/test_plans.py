"""A link's reads and writes grow with the changes, not with the table, whatever the statistics say."""

import pytest

from tests.given.fixtures import MakePair
from tests.given.site import Site
from tests.given.two_sites import carried

pytestmark = pytest.mark.spark

CHANGED, ALL = 200, 40_000
ITEM = (
    "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)",
    f"INSERT INTO item SELECT n, 'common' FROM generate_series(1, {ALL}) n",
)


def rows_read(site: Site) -> int:
    """Rows of the table that any plan has looked at since the database was made."""
    site.run("SELECT pg_stat_force_next_flush()")
    read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'item'"
    return int(site.value(read))


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("conflicts", [0, 20])
def test_a_link_looks_at_the_rows_that_changed_and_at_few_others(
    pair: MakePair, analyzed: bool, conflicts: int
) -> None:
    sites = pair(*ITEM, *["ANALYZE item"] * analyzed)
    sites.london.run(f"UPDATE item SET token = 'london' WHERE id % {ALL // CHANGED} = 0")
    sites.capetown.run(
        f"UPDATE item SET token = 'capetown' WHERE id % {ALL // max(conflicts, 1)} = 0 AND {conflicts} > 0"
    )
    before = [rows_read(site) for site in sites.sites]

    report = sites.run()

    assert carried(report).acquired == CHANGED
    assert carried(report).conflicts == conflicts
    for site, then in zip(sites.sites, before, strict=True):
        assert rows_read(site) - then < 10 * CHANGED, site.name


@pytest.mark.timeout(400)
def test_many_changes_in_a_table_of_their_own_size_are_not_compared_with_each_other_one_by_one(
    pair: MakePair,
) -> None:
    # Every row with every other took a minute; one look-up each takes less than a second. Hence so wide a margin.
    many = 25_000
    sites = pair(
        "CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL, price numeric)",
        f"INSERT INTO item SELECT n, 'common', n / 7.0 FROM generate_series(1, {many}) n",
    )
    sites.london.run(
        "UPDATE item SET token = 'london', price = price + 0.10", "DELETE FROM item WHERE id = 2"
    )
    sites.capetown.run("UPDATE item SET token = 'capetown' WHERE id % 100 = 0")

    report = sites.run()

    assert carried(report).acquired == many
    assert report.seconds["write"] < 12


def test_rows_that_come_into_an_empty_table_are_not_looked_for_among_those_that_came_before(
    pair: MakePair,
) -> None:
    # An empty table that was vacuumed is planned as one that costs nothing to read: every row would read all before it.
    many = 10_000
    sites = pair("CREATE TABLE item (id int PRIMARY KEY, token text NOT NULL)")
    sites.capetown.run("VACUUM (ANALYZE) item", 'VACUUM (ANALYZE) concord."public.item"')
    before = looked_at(sites.capetown)
    sites.london.run(f"INSERT INTO item SELECT n, 'london' FROM generate_series(1, {many}) n")
    assert carried(sites.run()).applied == many
    sites.capetown.wait_for_the_links_sessions_to_end()
    assert looked_at(sites.capetown) - before < 10 * many


def looked_at(site: Site) -> int:
    """Pages of the table and of its shadow table that were looked at since the database was made."""
    site.run("SELECT pg_stat_force_next_flush()")
    read = "SELECT sum(heap_blks_hit + heap_blks_read) FROM pg_statio_user_tables WHERE relname LIKE '%item'"
    return int(site.value(read))
