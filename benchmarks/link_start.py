"""`python -m benchmarks.link_start`: a link's statements at each end before it acquires a row, by tables in its set."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import databases, initialization, report
from benchmarks.arguments import add_places
from benchmarks.comparison import WrongResult
from benchmarks.databases import Pair, ServerKind
from benchmarks.measurement import Spread
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from benchmarks.statements import Statements, counted
from benchmarks.tables import make, named
from concord.tables.replication_set import ReplicatedTable
from demo import terminal
from demo.progress import Progress
from spark_jobs.link import transmit

PART = "link start"

#: The step of a link that takes its snapshot: acquisition begins with it.
ACQUISITION = "cut"


@dataclass
class Starts:
    """Links of a set of so many tables with so many changed rows: by end, what each was asked at its start."""

    tables: int
    changed: int
    statements: dict[str, int] = field(default_factory=dict)
    round_trips: dict[str, int] = field(default_factory=dict)
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)

    def add(self, end: str, seen: Statements, processor: float) -> None:
        """One link's start."""
        self.statements[end], self.round_trips[end] = seen.sent, seen.round_trips
        self.milliseconds.setdefault(end, []).append(seen.milliseconds)
        self.processor.setdefault(end, []).append(processor)


def start(pair: Pair, tables: Sequence[ReplicatedTable], changed: int) -> dict[str, tuple[Statements, float]]:
    """Run a link; by end, what it had been asked, and the processor's milliseconds, when acquisition began.

    Raises WrongResult where the link carries other rows than were changed.
    """
    found: dict[str, tuple[Statements, float]] = {}
    with counted() as asked:

        def hear(step: str) -> None:
            if step == ACQUISITION:
                found.update({end: (each.copy(), each.processor) for end, each in asked.items()})

        done = transmit(initialization.job(pair, tables=tables), _no_spark, hear)
    if done.total("applied") != changed:
        raise WrongResult(f"{changed} rows were changed, but the link reports {done.tables}")
    return found


def _no_spark() -> SparkSession:
    raise AssertionError("the driver carries so few rows")


def measure(pair: Pair, counts: Sequence[int], changes: Sequence[int], repeat: int) -> Iterator[Starts]:
    """One of each number of tables and of changed rows. Raises WrongResult."""
    for count in counts:
        tables = named(count)
        make(pair, tables)
        for changed in changes:
            starts = Starts(count, changed)
            for turn in range(repeat + 1):
                pair.london.run(f"UPDATE {tables[0].name} SET miles = miles + 1 WHERE id <= {changed}")
                for end, (seen, processor) in start(pair, tables, changed).items():
                    if turn:  # the first reads programs and pages from the disk
                        starts.add(end, seen, processor)
            yield starts


def grid(measured: Sequence[Starts]) -> Grid:
    """A line for each set and end. The processor's time is the least: others work beside the measurement."""
    head = ("tables", "changed rows", "end", "statements", "round trips", "ms", "least ms of the processor")
    rows = [
        (
            *(
                str(each.tables),
                str(each.changed),
                end,
                str(each.statements[end]),
                str(each.round_trips[end]),
            ),
            report.spread(Spread.of(each.milliseconds[end])),
            f"{min(each.processor[end]):.1f}",
        )
        for each in measured
        for end in sorted(each.statements, reverse=True)
    ]
    return Grid("The start of a link at each end", head, rows)


def _measure(directory: Path, options: argparse.Namespace) -> int:
    kind = ServerKind(version=options.version)
    progress = Progress(terminal.console())
    with databases.pair_in_workspace(directory, kind) as pair:
        with progress.step("Start links"):
            measured = list(measure(pair, options.tables, options.changes, options.repeat))
        results = "\n\n".join([report.surroundings(pair.capetown, options.repeat), markdown(grid(measured))])
    publish(PART, results, recorded=options.record)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what was changed."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.link_start", description=__doc__)
    made.add_argument("--tables", type=_counts, default=(1, 8, 64), help="tables in a set, as in 1,8,64")
    made.add_argument("--changes", type=_counts, default=(0, 10), help="changed rows, as in 0,10")
    made.add_argument("--repeat", type=int, default=9, help="links of each")
    made.add_argument("--version", type=int, default=16, help="of PostgreSQL: 16 or 18")
    add_places(made, "link_start")
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options), directory)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
