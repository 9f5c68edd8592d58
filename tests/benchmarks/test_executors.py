"""The benchmark of executors: its measures, and the table it prints."""

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from benchmarks.executors import DRIVER, LINK, Measured, Plan, grid, main
from benchmarks.way import way
from embedded.postgres import Server


@pytest.mark.parametrize("connections", [1, 2])
def test_a_connection_over_a_slow_way_carries_so_much_a_second_and_a_second_one_as_much_beside_it(
    server: Server, connections: int
) -> None:
    with way(server.host, server.port, rate=2e6) as far:
        login = {"user": server.superuser, "password": server.password, "dbname": "postgres"}
        opened = [
            psycopg.connect(host="127.0.0.1", port=far.entry, autocommit=True, **login)
            for _ in range(connections)
        ]
        began = time.monotonic()
        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(lambda each: each.execute("SELECT repeat('x', 1000000)").fetchall(), opened))
        seconds = time.monotonic() - began
        for each in opened:
            each.close()
    assert 0.45 < seconds < 0.95


def test_a_line_tells_the_rate_the_executors_and_the_seconds_of_everything() -> None:
    plan = Plan(400_000, 100_000, (2.0, None), (2,), 1)
    measured = [Measured(2.0, 2), Measured(None, 2)]
    for each in measured:
        each.seconds |= {LINK: [7.0], DRIVER: [5.0, 6.0]}
    one, other = grid(plan, measured).rows
    assert one == ("2", "2", "7.00", "5.50 (5.00 to 6.00)")
    assert other[0] == "no limit"


def test_too_many_changes_for_the_table_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--table-rows", "1000", "--changes", "600"]) == 2
    assert "1,200 different rows" in capsys.readouterr().err
