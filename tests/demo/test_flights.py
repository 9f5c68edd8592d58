"""The demo's data: unique keys, complete parents, the same rows at both sites."""

from collections.abc import Callable

import psycopg
import pytest

from demo import flights
from tests.conftest import Database

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def connection(database: Callable[[], Database]):
    with psycopg.connect(database().uri, autocommit=True) as made:
        yield made


def rows(connection, query: str):
    return connection.execute(query).fetchall()


def test_all_flights_of_the_package_load_under_their_keys_and_references(connection):
    added = flights.load(connection)
    assert rows(connection, "SELECT count(*) FROM flights") == [(flights.ALL_FLIGHTS,)]
    assert added == {"airports": 4, "planes": 721}
    validated = (
        "SELECT count(*) FROM pg_constraint"
        " WHERE convalidated AND contype = '{}' AND connamespace = 'public'::regnamespace"
    )
    assert rows(connection, validated.format("p")) == [(len(flights.KEYS),)]
    assert rows(connection, validated.format("f")) == [(len(flights.REFERENCES),)]


def test_missing_parents_are_marked_as_unknown(connection):
    flights.load(connection, 5_000)
    unknown = rows(connection, "SELECT faa FROM airports WHERE name = 'unknown airport' ORDER BY faa")
    assert unknown == [("BQN",), ("PSE",), ("SJU",), ("STT",)]
    assert rows(connection, "SELECT count(*) FROM planes WHERE model = 'unknown plane'") == [(288,)]


def test_values_the_package_does_not_know_are_null_and_not_text(connection):
    flights.load(connection, 1_000)
    assert rows(
        connection, "SELECT count(*) FROM airports WHERE tzone IS NULL AND name <> 'unknown airport'"
    ) == [(3,)]
    assert rows(connection, "SELECT count(*) > 0 FROM flights WHERE dep_time IS NULL") == [(True,)]


def test_the_second_site_gets_exactly_the_rows_of_the_first(connection, database):
    flights.load(connection, 1_000)
    with psycopg.connect(database().uri, autocommit=True) as other:
        flights.duplicate(connection, other)
        for table in flights.TABLES:
            query = f"SELECT count(*), md5(string_agg(t::text, ',' ORDER BY t::text)) FROM {table} t"
            assert rows(connection, query) == rows(other, query)
