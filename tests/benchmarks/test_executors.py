"""The benchmark of executors: its measures, and the table it prints."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import psycopg
import pytest

from benchmarks.executors import DRIVER, LINK, Measured, Plan, grid, main
from benchmarks.way import Way, way
from embedded.postgres import Server

MEBIBYTE = "SELECT repeat('x', 1048576)"


def opened(server: Server, far: Way) -> psycopg.Connection[tuple[str]]:
    login = {"user": server.superuser, "password": server.password, "dbname": "postgres"}
    return psycopg.connect(host="127.0.0.1", port=far.entry, autocommit=True, **login)


def test_a_connection_over_a_slow_way_carries_so_much_a_second(server: Server) -> None:
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with way(server.host, server.port, rate=2**21, sleep=sleep) as far, opened(server, far) as one:
        slept.clear()
        one.execute(MEBIBYTE).fetchall()
        assert 0.5 < sum(slept) < 0.501, "half a second, and the words around it"


def test_a_second_connection_over_a_slow_way_does_not_wait_for_the_first(server: Server) -> None:
    held, reached = Event(), Event()

    async def sleep(seconds: float) -> None:
        """The first answer is under way until the second has arrived."""
        if held.is_set() and not reached.is_set():
            reached.set()
            while held.is_set():
                await asyncio.sleep(0.001)

    with (
        way(server.host, server.port, rate=2**21, sleep=sleep) as far,
        opened(server, far) as one,
        opened(server, far) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        held.set()
        first = pool.submit(lambda: one.execute(MEBIBYTE).fetchall())
        try:
            assert reached.wait(100)
            assert len(other.execute(MEBIBYTE).fetchall()) == 1
            assert not first.done()
        finally:
            held.clear()
        assert len(first.result(100)) == 1


def test_a_rate_takes_its_time(server: Server) -> None:
    """At least; on a busy machine it takes more."""
    with way(server.host, server.port, rate=2**22) as far, opened(server, far) as one:
        began = time.monotonic()
        one.execute(MEBIBYTE).fetchall()
        assert time.monotonic() - began > 0.24


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
