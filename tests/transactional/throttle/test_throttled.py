"""A throttled replication between two servers (S0-46)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event
from typing import Any

import pendulum
import pytest

from concord.databases.registry import dialect
from concord.jobs.throttle import Throttle
from concord.transactional.replicate import replicate
from tests.given.at_step import At
from tests.given.replicated_sites import Replicated
from tests.given.staying_run import staying

DDL = ("CREATE TABLE movement (id int PRIMARY KEY, amount int)",)
#: Transactions that wait for their run.
OPEN = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"


@pytest.fixture
def capture() -> str:
    return "log"


@pytest.fixture
def sites(request: pytest.FixtureRequest, capture: str, replicated: Callable[..., Replicated]) -> Replicated:
    made = replicated(DDL, "public.movement", capture=capture, **getattr(request, "param", {}))
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


@dataclass
class Rests:
    """The rows at Cape Town whenever a run begins to rest, and the transactions that are open meanwhile."""

    sites: Replicated
    rows: list[int] = field(default_factory=list)
    open: list[Any] = field(default_factory=list)

    def __call__(self, step: str) -> None:
        if step == "throttle":
            self.rows.append(count(self.sites))
            self.open += [each for site in self.sites.sites for each in site.rows(OPEN)]


@pytest.mark.parametrize("capture", ["log", "triggers"])
@pytest.mark.parametrize("sites", [throttled(50)], indirect=True)
def test_a_throttled_run_replays_so_many_operations_a_second_and_no_more(sites: Replicated) -> None:
    """S0-46: rows come batch by batch, each a second's worth, and no transaction is open meanwhile."""
    sites.london.run(*inserts(1, 76))
    rests, began = Rests(sites), time.monotonic()
    report = replicate(sites.job(), dialect, rests)
    took = time.monotonic() - began
    assert (report.entries, report.operations) == (75, 150)
    assert took > 2.9, "150 operations"
    assert len(rests.rows) >= 3
    assert max(after - before for before, after in pairwise([0, *rests.rows])) <= 52, (
        "an entry may end beyond a second's worth"
    )
    assert not rests.open
    assert sites.are_equal()


@pytest.mark.parametrize("sites", [throttled(1)], indirect=True)
def test_a_run_that_rests_ends_when_it_is_asked_to_and_the_next_one_goes_on_there(sites: Replicated) -> None:
    """S0-46, S2-30: also while it lingers, and with a transaction for which it would rest for long."""
    sites.london.run("INSERT INTO movement SELECT n, 0 FROM generate_series(1, 3000) n")
    rests = Event()
    with staying(sites, at=At("throttle", rests.set), linger=3000.0) as (run, end):
        assert rests.wait(100)
        assert count(sites) == 3000, "whole, however large"
        time.sleep(0.3)
        assert not run.done(), "it rests"
        end.set()
        assert run.result(100).entries == 1
    sites.london.run(*inserts(4000, 4001))
    assert sites.run(asked_to_end=lambda: count(sites) > 3000).entries == 1
    assert sites.are_equal()


def _other_hours() -> str:
    now = pendulum.now("UTC")
    return f"{now.add(hours=2):%H:%M}-{now.add(hours=3):%H:%M} UTC"


@pytest.mark.parametrize("sites", [throttled(1, hours=_other_hours())], indirect=True)
def test_outside_of_its_hours_a_run_does_not_rest(sites: Replicated) -> None:
    sites.london.run(*inserts(1, 20))
    report = sites.run()
    assert report.entries == 19
    assert report.seconds.get("throttle", 0.0) < 1, "in its hours it would rest for 38 seconds"
