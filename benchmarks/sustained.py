"""A sustained rate: users of both sites commit all the while that a program works, until it has caught up."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks import pgbench, report
from benchmarks.comparison import check_whole
from benchmarks.databases import Database, Pair
from benchmarks.measurement import Spread
from benchmarks.report import Grid
from benchmarks.rival import Program, Rival

#: Those that carry the edits of both sites, and stay at work meanwhile.
PROGRAMS = (Program.WARM, Program.BUCARDO, Program.TUNED)

#: London's users edit rows with even keys, Cape Town's those with odd ones: nothing conflicts.
_UPDATE = "\\set half random(1, {half})\nUPDATE public.bookings SET miles = miles + 1 WHERE id = 2 * :half - {odd};\n"
_CLIENTS = 2
#: Transactions come in as many equal shares.
SHARES = 2 * _CLIENTS


@dataclass(frozen=True)
class Sustained:
    """One program's result with so many transactions, half of each site's users."""

    transactions: int
    seconds: float  #: from the first commit until both sites are equal
    behind: float  #: the part of them after the last commit
    runs: int

    @property
    def rate(self) -> float:
        """Transactions per second."""
        return self.transactions / self.seconds


def sustain(rival: Rival, rows: int, transactions: int) -> Sustained:
    """Let users edit both sites as fast as they can, and the program carry, run after run, until it has caught up.

    The run that begins after the last commit is the last one. Raises WrongResult when the sites then differ.
    """
    pair = rival.pair
    rival.make_ready()
    pair.everywhere("VACUUM (ANALYZE)", "CHECKPOINT")
    began, runs = time.monotonic(), 1
    with _users(pair, rows, transactions) as users:
        while not all(each.done() for each in users):
            rival.carry()
            runs += 1
    rival.carry()
    ended = time.monotonic()
    committed = max(each.result() for each in users)
    check_whole(pair.all, f"{rival.program}, caught up")
    return Sustained(transactions, ended - began, ended - committed, runs)


@contextmanager
def _users(pair: Pair, rows: int, transactions: int) -> Iterator[Sequence[Future[float]]]:
    """Each site's, at work, and when their last commit was; raises ProgramFailed when a statement of theirs
    failed."""
    with ThreadPoolExecutor(len(pair.all)) as pool:
        users = [
            pool.submit(_edit, database, rows, odd, transactions // 2)
            for odd, database in enumerate(pair.all)
        ]
        yield users
        wait(users)
    for each in users:
        each.result()


def _edit(database: Database, rows: int, odd: int, transactions: int) -> float:
    pgbench.run_transactions(database, _UPDATE.format(half=rows // 2, odd=odd), _CLIENTS, transactions)
    return time.monotonic()


def grid(transactions: int, measured: Mapping[Program, Sequence[Sustained]]) -> Grid:
    """A line for each program; the quotient is that of the two rates of each repetition."""
    head = ("program", "transactions/s", "Concord / program", "seconds behind the last commit", "runs")
    ours = measured[Program.WARM]
    lines = [
        (
            program,
            report.spread(Spread.of([each.rate for each in theirs])),
            report.spread(
                Spread.of([one.rate / other.rate for one, other in zip(ours, theirs, strict=True)])
            ),
            report.spread(Spread.of([each.behind for each in theirs])),
            report.spread(Spread.of([each.runs for each in theirs])),
        )
        for program, theirs in measured.items()
    ]
    return Grid(f"Until both sites have caught up with {transactions:,} updates of single rows", head, lines)
