"""The benchmark of distance: its measures, and the table it prints."""

import time

import psycopg
import pytest

from benchmarks.distance import Runs, grid
from benchmarks.way import way
from concord.jobs.link import Direction
from embedded.postgres import Server


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_a_way_delays_whoever_speaks_over_it_and_counts_round_trips_and_logins(
    server: Server, delay: float
) -> None:
    with way(server.host, server.port, delay) as far:
        login = {"user": server.superuser, "password": server.password, "dbname": "postgres"}
        with psycopg.connect(host="127.0.0.1", port=far.entry, autocommit=True, **login) as connection:
            far.forget()
            began = time.monotonic()
            for _ in range(3):
                assert connection.execute("SELECT repeat('x', 1000000)").fetchone() == ("x" * 1_000_000,)
            seconds = time.monotonic() - began
        assert (far.logins, far.turns) == (0, 3)
        assert seconds >= 3 * 2 * delay


def test_a_line_tells_both_links_their_sum_and_what_went_over_the_way() -> None:
    runs = Runs(0.075, 1_000)
    runs.seconds = {Direction.FORWARD: [3.0, 5.0, 4.0], Direction.REVERSE: [1.0, 1.0, 2.0]}
    runs.logins = {Direction.FORWARD: 1, Direction.REVERSE: 2}
    runs.turns = {Direction.FORWARD: 27, Direction.REVERSE: 21}
    (line,) = grid([runs]).rows
    assert line == (
        *("150", "1,000", "4.00 (3.00 to 5.00)", "1.00 (1.00 to 2.00)", "6.00 (4.00 to 6.00)"),
        *("1 + 2", "27", "21"),
    )
