"""A quiescent run writes no row in any replicated, shadow, conflict or staging table (rule 12)."""

import pytest

from tests.given.at_rest import control, no_spark, written
from tests.given.fixtures import MakePair, over_captures
from tests.given.link_without_spark import carry
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

FLEET = (
    "CREATE TABLE plane (id int PRIMARY KEY, seats int)",
    "CREATE TABLE flight (id int PRIMARY KEY, plane int REFERENCES plane, note text)",
    "INSERT INTO plane SELECT n, 100 FROM generate_series(1, 10) n",
    "INSERT INTO flight SELECT n, n % 10 + 1 FROM generate_series(1, 50) n",
)


def edit_both(sites: Pair) -> None:
    sites.london.run(
        "UPDATE flight SET note = 'london' WHERE id <= 10",
        "DELETE FROM flight WHERE id = 20",
        "INSERT INTO plane VALUES (11, 1)",
        "INSERT INTO flight VALUES (51, 11)",
    )
    sites.capetown.run(
        "UPDATE flight SET note = 'capetown' WHERE id BETWEEN 5 AND 20",
        "DELETE FROM flight WHERE id IN (6, 30)",
        "UPDATE plane SET id = 12 WHERE id = 11",
    )


@over_captures
def test_after_two_rounds_a_run_writes_control_rows_alone_and_starts_no_spark(pair: MakePair) -> None:
    sites = pair(*FLEET)
    edit_both(sites)
    sites.settle()
    assert sites.equal
    assert sites.conflicts()
    before = {site.name: site.writes() for site in sites.sites}
    sites.spark = no_spark

    reports = [sites.run("forward"), sites.run("reverse")]

    assert [report.total("acquired") for report in reports] == [0, 0]
    for site in sites.sites:
        assert written(site, before[site.name]) == control(site)


@over_captures
def test_both_sites_hold_the_same_versions_after_two_rounds(pair: MakePair) -> None:
    """One site's knowledge of a row is the other's too: nothing is left to tell."""
    sites = pair(*FLEET)
    edit_both(sites)
    sites.settle()
    for table in ("public.plane", "public.flight"):
        versions = f'SELECT id, origin, changed_at, derived, vector, deleted, born FROM concord."{table}" ORDER BY id'
        assert sites.london.rows(versions) == sites.capetown.rows(versions)


def test_content_that_stands_there_already_is_not_written_again(pair: MakePair) -> None:
    """Only its version is: two sites that make one edit have nothing to tell their own triggers and replicas."""
    sites = pair(*FLEET)
    for site in reversed(sites.sites):
        site.run("UPDATE plane SET seats = 101 WHERE id <= 3")
    before = sites.capetown.writes()
    assert carry(sites.job())["public.plane"].converged == 3
    changed = written(sites.capetown, before)
    assert ("public.plane" in changed, changed["concord.public.plane"]) == (False, 3)


def test_no_staging_table_is_left(pair: MakePair) -> None:
    sites = pair(*FLEET)
    edit_both(sites)
    sites.settle()
    for site in sites.sites:
        assert (
            site.rows("SELECT relname FROM pg_class WHERE relnamespace = 'concord_staging'::regnamespace")
            == []
        )
