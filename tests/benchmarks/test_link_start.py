"""The benchmark of a link's start: what it counts, and the table it prints."""

import psycopg

from benchmarks.link_start import Starts, grid
from benchmarks.statements import Statements, counted
from concord.databases.postgresql.facts.connection import connect, every, run
from concord.jobs.site import Credentials
from embedded.postgres import Server


def test_each_statement_of_a_round_trip_is_counted_and_other_connections_are_not(server: Server) -> None:
    login = Credentials(
        host=server.host,
        port=server.port,
        database="postgres",
        user=server.superuser,
        password=server.password,
    )
    with counted() as found, connect(login) as connection:
        found["postgres"].sent = found["postgres"].round_trips = 0
        every(connection, "SELECT 1", "SET LOCAL lock_timeout = 0", "SELECT 2")
        run(connection, "SELECT 3")
        with psycopg.connect(server.uri("postgres")) as another:
            another.execute("SELECT 4")
        its = found["postgres"]
        assert (its.sent, its.round_trips) == (4, 2)
        assert its.sessions == {connection.info.backend_pid}
        assert its.processor > 0


def test_a_line_is_an_end_with_the_median_of_its_callers_and_the_least_of_its_processor() -> None:
    starts = Starts(64, 10)
    for milliseconds, processor in ((3.0, 2.5), (9.0, 2.0), (5.0, 4.0)):
        starts.add("london", Statements(8, 3, milliseconds), processor)
        starts.add("capetown", Statements(7, 2, 1.0), 1.0)
    assert grid([starts]).rows == [
        ("64", "10", "london", "8", "3", "5.00 (3.00 to 9.00)", "2.0"),
        ("64", "10", "capetown", "7", "2", "1.00", "1.0"),
    ]
