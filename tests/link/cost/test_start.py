"""The statements of a quiet link at each end before it acquires a row: as few for many tables as for one."""

import pytest

from benchmarks.link_start import ACQUISITION
from benchmarks.statements import Statements, counted
from spark_jobs.link import transmit
from tests.given.at_rest import no_spark
from tests.given.fixtures import MakePair
from tests.given.two_sites import Pair

pytestmark = pytest.mark.spark

#: One round trip for the site's facts, its tables, columns and foreign keys; one for what was provisioned and which
#: privileges are missing; one for the fence and the link's state.
STATEMENTS, ROUND_TRIPS = 8, 3


def tables(count: int) -> tuple[str, ...]:
    """The statements that make so many, each but the first with a foreign key to the one before it."""
    parents = ["", *(f" REFERENCES t{number}" for number in range(count - 1))]
    return tuple(
        f"CREATE TABLE t{number} (id int PRIMARY KEY, parent int{parent}, note text UNIQUE, tags text[])"
        for number, parent in enumerate(parents)
    )


def started(sites: Pair) -> dict[str, Statements]:
    """By site, the statements of a quiet link when acquisition begins; those of logins are left out."""
    seen: dict[str, Statements] = {}
    sites.spark = no_spark
    with counted() as asked:

        def hear(step: str) -> None:
            if step == ACQUISITION:
                databases = {site.database: site for site in sites.sites}
                seen.update({databases[each].name: found.copy() for each, found in asked.items()})

        assert transmit(sites.job(), sites.spark, hear).total("acquired") == 0
    for site in sites.sites:
        logins = len(seen[site.name].sessions)  # each with its first statement
        seen[site.name].sent -= logins
        seen[site.name].round_trips -= logins
    return seen


@pytest.mark.parametrize("count", [1, 9])
def test_a_quiet_link_starts_with_eight_statements_at_each_end_however_many_tables_there_are(
    pair: MakePair, count: int
) -> None:
    found = started(pair(*tables(count)))
    assert {name: (each.sent, each.round_trips) for name, each in found.items()} == {
        "london": (STATEMENTS, ROUND_TRIPS),
        "capetown": (STATEMENTS, ROUND_TRIPS),
    }


def test_types_that_are_not_postgresqls_own_cost_one_statement_more_however_many_they_are(
    pair: MakePair,
) -> None:
    found = started(
        pair(
            "CREATE TYPE mood AS ENUM ('glad', 'sad')",
            "CREATE DOMAIN miles AS int CHECK (VALUE >= 0)",
            "CREATE TABLE person (id int PRIMARY KEY, mood mood, moods mood[], walked miles)",
            "CREATE TABLE trip (id int PRIMARY KEY, length miles)",
        )
    )
    assert {name: (each.sent, each.round_trips) for name, each in found.items()} == {
        "london": (STATEMENTS + 1, ROUND_TRIPS + 1),
        "capetown": (STATEMENTS + 1, ROUND_TRIPS + 1),
    }
