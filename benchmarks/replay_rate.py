"""A rate that users of London keep up, and whether runs of a replication that follow each other keep up with it."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks import pgbench, report
from benchmarks.comparison import check_whole
from benchmarks.replay_cost import CLIENTS, OPERATIONS, small_transactions
from benchmarks.replaying import Run
from benchmarks.report import Grid
from benchmarks.subscribers import Subscriber


@dataclass(frozen=True)
class Kept:
    """The rate over so many seconds."""

    wanted: int  #: operations a second
    seconds: float  #: from the first commit to the last
    behind: float  #: from the last commit until all had been replayed
    operations: int
    runs: int
    driver: float  #: its processor seconds
    memory: int  #: the most of the driver, bytes


def keep_up(concord: Subscriber, rows: int, wanted: int, seconds: int) -> Kept:
    """Users commit small transactions at that rate, and run follows run. Raises WrongResult where the sites then
    differ."""
    pair, users = concord.pair, pgbench.Users(CLIENTS, seconds, rate=wanted // OPERATIONS)
    script = small_transactions(rows)
    concord.carry()  # what was committed before
    runs: list[Run] = []
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(pgbench.transactions_per_second, pair.london, script, users)
        committed = pool.submit(time.monotonic)  # the pool's one thread comes to it after the users
        while not committing.done():
            _carry(concord, runs)
        committing.result()
    _carry(concord, runs)
    ended = time.monotonic()
    check_whole(pair.all, "the rate that was kept up")
    return Kept(
        wanted,
        committed.result() - began,
        ended - committed.result(),
        sum(each.report.operations for each in runs),
        len(runs),
        sum(each.processor for each in runs),
        max(each.memory for each in runs),
    )


def _carry(concord: Subscriber, runs: list[Run]) -> None:
    run = concord.carry()
    assert run is not None
    runs.append(run)


def grid(kept: Kept) -> Grid:
    """One line."""
    head = (
        *("operations/s wanted", "committed", "seconds", "behind the last commit, s", "runs"),
        *("driver, µs an operation", "its memory, MiB"),
    )
    cells = (
        f"{kept.wanted:,}",
        f"{kept.operations / kept.seconds:,.0f}",
        f"{kept.seconds:.1f}",
        f"{kept.behind:.2f}",
        str(kept.runs),
        f"{kept.driver / kept.operations * 1e6:.1f}",
        report.mebibytes(kept.memory),
    )
    return Grid("Users commit at a steady rate, and run follows run", head, [cells])
