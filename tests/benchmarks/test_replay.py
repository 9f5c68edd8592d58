"""The benchmark of replays: its tables, and all of it in small on two servers."""

import time
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from rich.console import Console

from benchmarks import backends, databases, replay, replay_cost, replay_lag, replay_rate, subscribers
from benchmarks.comparison import WrongResult
from benchmarks.databases import Database, ServerKind
from benchmarks.replay import Plan
from benchmarks.replay_cost import CLIENTS, OPERATIONS, Cost, Costs
from benchmarks.replay_rate import Kept
from benchmarks.subscribers import Program
from demo.progress import Progress

BUSY = "SELECT count(md5(n::text)) FROM generate_series(1, 100000) n"
SPENT = 0.1  #: seconds of a processor's time


def test_a_kind_of_transaction_is_a_line_whose_ratio_is_that_of_one_log() -> None:
    costs = Costs("transactions of 4")
    costs.of[Program.SUBSCRIPTION].extend([Cost(0.1), Cost(0.4)])
    costs.of[Program.CONCORD].extend([Cost(0.2, 1_000, 0.05, 2 * 1024**2), Cost(0.4, 1_000, 0.05, 1024**2)])
    assert replay_cost.grid([costs]).rows == [
        (
            *("transactions of 4", "1,000", "2", "250.00 (100.00 to 400.00)", "300.00 (200.00 to 400.00)"),
            *("1.50 (1.00 to 2.00)", "50.00", "2"),
        )
    ]


def test_lags_are_told_in_milliseconds() -> None:
    assert replay_lag.grid({Program.CONCORD: [0.3, 0.1, 0.2]}).rows == [("Concord", "3", "200", "300", "300")]


def test_a_rate_is_told_beside_the_one_that_was_wanted() -> None:
    kept = Kept(wanted=5_000, seconds=2.0, behind=0.5, operations=8_000, runs=3, driver=0.08, memory=1024**2)
    assert replay_rate.grid(kept).rows == [("5,000", "4,000", "2.0", "0.50", "3", "10.0", "1")]


@pytest.mark.long
def test_both_programs_replay_one_log_and_one_that_leaves_something_out_is_found_out(tmp_path: Path) -> None:
    plan = Plan(rounds=1, transactions=5, large=600, commits=2, rate=400, seconds=1)
    settings = {**subscribers.KIND.settings, "fsync": "off"}
    with databases.running_pair(tmp_path, ServerKind(settings=settings)) as pair:
        with subscribers.subscribers(pair, plan.rows) as both:
            progress = Progress(Console())
            costs, lags, kept = replay.grids(plan, both, progress)
            assert [line[1] for line in costs.rows] == [str(5 * CLIENTS * OPERATIONS), "600"]
            assert [line[1] for line in lags.rows] == ["2", "2"]
            assert float(kept.rows[0][1]) > 0
            both[1].pair.capetown.run("DELETE FROM public.bookings WHERE id = 1")
            with pytest.raises(WrongResult, match="the sites differ"):
                replay_cost.measure(
                    both, lambda: replay_cost.commit_small(pair.london, plan.rows, 1), Costs("", CLIENTS)
                )
        ended_sessions_count_and_the_servers_own_processes_do_not(pair.capetown)


def ended_sessions_count_and_the_servers_own_processes_do_not(database: Database) -> None:
    until = time.monotonic() + 100
    while backends.running(database.server):  # the last sessions end a moment after they are closed
        assert time.monotonic() < until
        time.sleep(0.01)
    before = backends.processor_seconds(database.server)
    with database.connect() as connection:
        spend(connection)
        during = backends.processor_seconds(database.server)
        assert during - before >= SPENT - backends.LEAST
    assert backends.processor_seconds(database.server) >= during - backends.LEAST, "it has ended"


def spend(connection: psycopg.Connection[Any]) -> None:
    """Time of a processor, however fast, by one session."""
    session = psutil.Process(connection.info.backend_pid)
    while session.cpu_times().user < SPENT:
        connection.execute(BUSY.encode())
