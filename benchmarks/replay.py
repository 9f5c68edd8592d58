"""`python -m benchmarks.replay`: a replication beside PostgreSQL's own subscription, on the same log, in turn."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks import databases, replay_cost, replay_lag, replay_rate, report, subscribers
from benchmarks.arguments import add_places, changes, positive
from benchmarks.bookings import Edits
from benchmarks.record import markdown, publish
from benchmarks.replay_cost import Costs
from benchmarks.report import Grid
from benchmarks.subscribers import Subscriber
from demo import terminal
from demo.progress import Progress

PART = "replay"

#: Replayed by each program before anything is measured: the first run reads programs and libraries from the disk.
_WARM_UP = 20
_LEAST_ROWS = 1_000
_OFTEN = "Each number is the median of its rounds, in brackets the range."


@dataclass(frozen=True)
class Plan:
    """How many of each, and for how long."""

    rounds: int
    transactions: int  #: small ones of each client, in each round
    large: int  #: operations of the large one in each round
    commits: int  #: whose lag is measured
    rate: int  #: operations a second
    seconds: int

    @property
    def rows(self) -> int:
        """No two large transactions edit the same row."""
        return max(self.rounds * self.large, self.commits + 1, _LEAST_ROWS)


def grids(plan: Plan, both: tuple[Subscriber, Subscriber], progress: Progress) -> Iterator[Grid]:
    """Measure everything, in turn; the large transactions, which delete rows, at the end."""
    _small(plan, both, _WARM_UP, Costs("Warm up"), progress)
    small = Costs(f"transactions of {replay_cost.OPERATIONS}")
    for _ in range(plan.rounds):
        _small(plan, both, plan.transactions, small, progress)
    with progress.step(f"The lag of {plan.commits} commits"):
        lags = {each.program: replay_lag.lags(each, plan.commits) for each in both}
    with progress.step(f"{plan.rate:,} operations a second"):
        kept = replay_rate.keep_up(both[0], plan.rows, plan.rate, plan.seconds)
    large = Costs("one transaction", entries=1)
    for turn in range(plan.rounds):
        _large(both, Edits(plan.rows, plan.large, turn * plan.large), large, progress)
    yield replay_cost.grid([small, large])
    yield replay_lag.grid(lags)
    yield replay_rate.grid(kept)


def _small(
    plan: Plan, both: tuple[Subscriber, Subscriber], each: int, costs: Costs, progress: Progress
) -> None:
    """So many of each client."""
    london, costs.entries = both[0].pair.london, each * replay_cost.CLIENTS
    with progress.step(f"{costs.entries:,} small transactions") as step:
        replay_cost.measure(both, lambda: replay_cost.commit_small(london, plan.rows, each), costs)
        step.result = _ratio(costs)


def _large(both: tuple[Subscriber, Subscriber], edits: Edits, costs: Costs, progress: Progress) -> None:
    for each in both:
        each.carry()  # what was committed before
    with progress.step(f"One transaction of {edits.count:,} operations") as step:
        replay_cost.measure(both, lambda: replay_cost.commit_large(both[0].pair.london, edits), costs)
        step.result = _ratio(costs)


def _ratio(costs: Costs) -> str:
    return f"ratio {report.spread(costs.ratio)}"


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    progress = Progress(terminal.console())
    with databases.pair_in_workspace(directory, subscribers.KIND) as pair, ExitStack() as stack:
        with progress.step(f"Make a table of {plan.rows:,} rows, and two that replay it"):
            both = stack.enter_context(subscribers.subscribers(pair, plan.rows))
        measured = list(grids(plan, both, progress))
        text = "\n\n".join([f"{report.machine(pair.london.version)} {_OFTEN}", *map(markdown, measured)])
    publish(PART, text, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when both programs carried what London had committed."""
    options = _parser().parse_args(arguments)
    plan = Plan(
        options.rounds, options.transactions, options.large, options.commits, options.rate, options.seconds
    )
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    made.add_argument("--rounds", type=positive, default=3, help="of either kind of transaction")
    made.add_argument("--transactions", type=positive, default=5_000, help="small ones of each client")
    made.add_argument("--large", type=changes, default=1_000_000, help="operations of the large one")
    made.add_argument("--commits", type=positive, default=100, help="whose lag is measured")
    made.add_argument("--rate", type=positive, default=5_000, help="operations a second that users commit")
    made.add_argument("--seconds", type=positive, default=20, help="for which they do")
    add_places(made, PART)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
