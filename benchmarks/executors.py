"""`python -m benchmarks.executors`: links by Spark clusters of several sizes, and in their driver's threads."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, report
from benchmarks.arguments import add_places, positive
from benchmarks.bookings import Edits
from benchmarks.comparison import NEVER, check
from benchmarks.databases import Pair, ServerKind
from benchmarks.initialization import initialize, job
from benchmarks.link_run import Where, run_link
from benchmarks.measurement import Spread
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from benchmarks.way import Way, way
from concord.jobs.link import LinkJob
from concord.machine.java import java_home
from concord.orchestration.tasks.spark_settings import SHORT_LIVED
from demo import terminal
from demo.progress import Progress
from embedded.spark_cluster import AUTHENTICATED, Cluster

PART = "executors"

#: Of each worker, of which one executor takes all.
MEMORY = "2g"

#: The measured works, in the order in which they are done.
LINK, DRIVER = "link", "link in threads"

Seconds = dict[str, list[float]]


@dataclass(frozen=True)
class Plan:
    """How many rows a table has and links change, over how slow connections, by how many executors, how often."""

    rows: int
    changes: int
    rates: Sequence[float | None]  #: MB/s of each connection to the far site; None: as near as the other one
    executors: Sequence[int]
    repeat: int

    @property
    def edited(self) -> int:
        """Different rows that one repetition edits."""
        return 2 * self.changes


@dataclass
class Measured:
    """The seconds of everything at one rate with so many executors, and as many readers of each site."""

    rate: float | None
    executors: int
    seconds: Seconds = field(default_factory=lambda: {each: [] for each in (LINK, DRIVER)})


@dataclass(frozen=True)
class Bench:
    """The servers and the cluster that one line is measured with."""

    plan: Plan
    pair: Pair
    far: Way
    spark: Where
    measured: Measured

    def repetition(self) -> None:
        """Both once, in new tables. Raises WrongResult where a site then lacks a row."""
        databases.fill_pair(self.pair, self.plan.rows)
        initialize(self.pair)
        self._link(LINK, 0, spark_from=1)
        self._link(DRIVER, self.plan.changes, spark_from=NEVER)

    def _job(self, **asked: int) -> LinkJob:
        plain = job(self.pair)
        source = plain.source.model_copy(update={"readers": self.measured.executors})
        there = plain.target if self.measured.rate is None else self.far.to(plain.target)
        target = there.model_copy(update={"readers": self.measured.executors})
        return plain.model_copy(update={"source": source, "target": target, **asked})

    def _link(self, name: str, before: int, **asked: int) -> None:
        edits = Edits(self.plan.rows, self.plan.changes, before)
        self.pair.london.run(*edits.statements)
        self.pair.everywhere("VACUUM (ANALYZE)", "CHECKPOINT")
        self.measured.seconds[name].append(run_link(self._job(**asked), self.spark).measurement.wall)
        check(self.pair.all, edits)


def grid(plan: Plan, every: Sequence[Measured]) -> Grid:
    """A line for each rate and number of executors."""
    head = ("MB/s of a connection", "executors", *(f"{name}, s" for name in (LINK, DRIVER)))
    lines = [
        (
            "no limit" if each.rate is None else f"{each.rate:g}",
            str(each.executors),
            *(report.spread(Spread.of(seconds)) for seconds in each.seconds.values()),
        )
        for each in every
    ]
    return Grid(f"A table of {plan.rows:,} rows, of which {plan.changes:,} change", head, lines)


@contextmanager
def _cluster(directory: Path, workers: int) -> Iterator[Cluster]:
    (place := directory / "cluster").mkdir()
    cluster = Cluster(place, java_home(), os.environ, workers, MEMORY)
    try:
        yield cluster
    finally:
        cluster.stop()


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    progress, every = Progress(terminal.console()), list[Measured]()
    with ExitStack() as stack:
        pair = stack.enter_context(databases.pair_in_workspace(directory, ServerKind()))
        with progress.step(f"Start a Spark cluster of {max(plan.executors)} workers"):
            cluster = stack.enter_context(_cluster(directory, max(plan.executors)))
        server = pair.capetown.server
        for rate in plan.rates:
            far = stack.enter_context(way(server.host, server.port, rate=rate and rate * 1e6))
            for executors in plan.executors:
                measured = Measured(rate, executors)
                settings = {"spark.cores.max": str(executors), "spark.executor.extraJavaOptions": SHORT_LIVED}
                spark = Where(cluster.url, {**AUTHENTICATED, **settings}, cluster.secret)
                bench = Bench(plan, pair, far, spark, measured)
                with progress.step(f"{executors} executors, {rate or 'any number of'} MB/s") as step:
                    for _ in range(plan.repeat):
                        bench.repetition()
                    step.result = ", ".join(
                        f"{name} {each[-1]:.1f} s" for name, each in measured.seconds.items()
                    )
                every.append(measured)
        results = "\n\n".join([report.surroundings(pair.capetown, plan.repeat), markdown(grid(plan, every))])
    publish(PART, results, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when everything was carried."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.executors", description=__doc__)
    made.add_argument("--table-rows", type=positive, default=300_000, help="rows of the table")
    made.add_argument("--changes", type=positive, default=100_000, help="of them changed before each link")
    made.add_argument("--rates", type=_rates, default=(1.0, None), help="MB/s, as in 1,0; 0: no limit")
    made.add_argument("--executors", type=_numbers, default=(1, 2, 4), help="as in 1,2,4")
    made.add_argument("--repeat", type=positive, default=1, help="runs of each")
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.table_rows, options.changes, options.rates, options.executors, options.repeat)
    if plan.edited > plan.rows:
        sys.stderr.write(
            f"a table of {plan.rows:,} rows has not the {plan.edited:,} different rows that links carry\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


def _rates(text: str) -> tuple[float | None, ...]:
    found = tuple(float(part) or None for part in text.split(","))
    if not all(rate is None or rate > 0 for rate in found):
        raise argparse.ArgumentTypeError("each rate must be above 0, or 0 for no limit")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(positive(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
