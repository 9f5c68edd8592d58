"""A throttled replication between two servers (S0-46)."""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pendulum
import pytest

from concord.jobs.throttle import Throttle
from tests.given.replicated_sites import Replicated
from tests.given.staying_run import staying

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)",)
#: Transactions that wait for their run.
OPEN = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
    " AND clock_timestamp() - xact_start > interval '0.5 s'"
)


@pytest.fixture
def sites(request: pytest.FixtureRequest, replicated: Callable[..., Replicated]) -> Replicated:
    made = replicated(DDL, "public.movement", **getattr(request, "param", {}))
    made.initialize()
    return made


def throttled(rate: int, **more: Any) -> dict[str, Any]:
    return {"throttle": Throttle(operations_per_second=rate, **more)}


def count(sites: Replicated) -> int:
    [(rows,)] = sites.capetown.rows("SELECT count(*) FROM movement")
    assert isinstance(rows, int)
    return rows


def inserts(first: int, last: int) -> list[str]:
    return [f"INSERT INTO movement VALUES ({n}, 0), (-{n}, 0)" for n in range(first, last)]


@pytest.mark.parametrize("sites", [throttled(50), throttled(50) | {"capture": "triggers"}], indirect=True)
def test_a_throttled_run_replays_so_many_operations_a_second_and_no_more(sites: Replicated) -> None:
    """S0-46: rows come batch by batch, each a second's worth, and no transaction is open meanwhile."""
    sites.london.run(*inserts(1, 76))
    seen, waiting = [(time.monotonic(), 0)], list[Any]()
    with staying(sites) as (run, _):
        while not run.done():
            time.sleep(0.05)
            seen.append((time.monotonic(), count(sites)))
            waiting += [*sites.capetown.rows(OPEN), *sites.london.rows(OPEN)]
    report = run.result()
    assert (report.entries, report.operations) == (75, 150)
    assert report.seconds["throttle"] > 1.5
    steps = [(at, rows - before) for (_, before), (at, rows) in pairwise(seen) if rows > before]
    assert len(steps) >= 3
    assert max(more for _, more in steps) <= 52, "an entry may end beyond a second's worth"
    assert not waiting
    assert sites.are_equal()


@pytest.mark.parametrize("sites", [throttled(1)], indirect=True)
def test_a_run_that_rests_ends_when_it_is_asked_to_and_the_next_one_goes_on_there(sites: Replicated) -> None:
    """S0-46, S2-30: also while it lingers, and with a transaction for which it would rest for long."""
    sites.london.run("INSERT INTO movement SELECT n, 0 FROM generate_series(1, 3000) n")
    with staying(sites, linger=60.0) as (run, end):
        while not count(sites):
            time.sleep(0.02)
        time.sleep(0.3)
        assert not run.done(), "it rests"
        began = time.monotonic()
        end.set()
        assert run.result().entries == 1, "whole, however large"
        assert time.monotonic() - began < 2
    sites.london.run(*inserts(4000, 4001))
    assert sites.run(asked_to_end=lambda: count(sites) > 3000).entries == 1
    assert sites.are_equal()


def _other_hours() -> str:
    now = pendulum.now("UTC")
    return f"{now.add(hours=2):%H:%M}-{now.add(hours=3):%H:%M} UTC"


@pytest.mark.parametrize("sites", [throttled(1, hours=_other_hours())], indirect=True)
def test_outside_of_its_hours_a_run_does_not_rest(sites: Replicated) -> None:
    sites.london.run(*inserts(1, 20))
    began = time.monotonic()
    assert sites.run().entries == 19
    assert time.monotonic() - began < 10
