"""`python -m benchmarks.growth`: the same changes in a small and in a large table, and very many changes in one run."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import WARM_UP, Edits
from benchmarks.comparison import WrongResult, check, resident, started
from benchmarks.databases import Pair, ServerKind
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Measurement, Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from demo import terminal
from demo.progress import Progress

PART = "growth"


@dataclass(frozen=True)
class Plan:
    """Changes in tables of each size: among as many of the newest rows, and over the rest of the table."""

    sizes: Sequence[int]
    changes: Sequence[int]
    newest: int
    repeat: int
    many: int = 0  #: changes of one last run, nearly every row of a table of as many

    @property
    def too_large(self) -> bool:
        """No row may be edited twice."""
        return sum(self.changes) * self.repeat + WARM_UP > min(self.newest, min(self.sizes) - self.newest)

    def edits(self, rows: int) -> Iterator[tuple[str, Edits]]:
        """Sets of edits, each with where its rows are; the first is one that nobody measures."""
        older = rows - self.newest
        parts = {"anywhere": (1, older), f"the newest {self.newest:,}": (older + 1, self.newest)}
        yield "", Edits(rows, WARM_UP, 0, 1, older)
        before = WARM_UP
        for place, part in parts.items():
            for count in (count for count in self.changes for _ in range(self.repeat)):
                yield place, Edits(rows, count, before, *part)
                before += count


@dataclass
class Results:
    """Seconds of warm links by place, changes and size; and the last run."""

    seconds: dict[tuple[str, int], dict[int, list[float]]] = field(default_factory=dict)
    many: Measurement | None = None


def compare(pair: Pair, plan: Plan, spark: Path, progress: Progress) -> Results:
    """Measure the plan. Raises WrongResult, or whatever made a link fail."""
    results = Results()
    for rows in plan.sizes:
        with progress.step(f"Make a table of {rows:,} rows in two databases"):
            databases.fill_pair(pair, rows)
            initialize(pair)
        for place, edits in plan.edits(rows):
            with progress.step(f"{edits.count:,} changes, {place or 'to warm up'}") as step:
                seconds = _carry(pair, edits, Start.WARM, spark).wall
                step.result = f"{seconds:.2f} s"
            if place:
                by_size = results.seconds.setdefault((place, edits.count), {})
                by_size.setdefault(rows, []).append(seconds)
    if plan.many:
        with progress.step(f"{plan.many:,} changes in {plan.many:,} rows") as step:
            databases.fill_pair(pair, plan.many)
            initialize(pair)
            results.many = _carry(pair, Edits(plan.many, plan.many), Start.COLD, spark)
            step.result = f"{results.many.wall:.1f} s, {report.mebibytes(results.many.memory)} MiB"
    return results


def _carry(pair: Pair, edits: Edits, start: Start, spark: Path) -> Measurement:
    pair.everywhere("VACUUM (ANALYZE)")
    pair.london.run(*edits.statements, "VACUUM (ANALYZE)")
    pair.everywhere("CHECKPOINT")
    with started(start, spark):
        run = run_link(job(pair))
    if run.report.total("applied") != edits.count:
        raise WrongResult(f"{edits.count} rows were edited, but the link reports {run.report.tables}")
    check(pair.all, edits)
    return run.measurement


def grids(plan: Plan, results: Results) -> Iterator[Grid]:
    """A line for each kind and number of changes; the ratio is that of the largest table to the smallest."""
    head = ("edited rows", "changes", *(f"{rows:,} rows, s" for rows in plan.sizes), "ratio")
    lines = []
    for (place, count), by_size in results.seconds.items():
        spreads = [Spread.of(by_size[rows]) for rows in plan.sizes]
        compared = report.ratio(spreads[-1], spreads[0])
        lines.append((place, f"{count:,}", *map(report.spread, spreads), compared))
    yield Grid("Whole warm links, from submission to end, by rows in the table", head, lines)
    if results.many:
        cells = (f"{plan.many:,}", f"{results.many.wall:.1f}", report.mebibytes(results.many.memory))
        yield Grid("One cold link with very many changes", ("changes", "s", "memory, MiB"), [cells])


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with resident(directory) as spark:
            results = compare(pair, plan, spark, Progress(terminal.console()))
        text = "\n\n".join(
            [report.surroundings(pair.london, plan.repeat), *map(markdown, grids(plan, results))]
        )
    publish(PART, text, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what the users had written."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    made.add_argument("--tables", type=counts, default=(1_000_000, 10_000_000), help="rows of each table")
    made.add_argument("--changes", type=counts, default=(10, 1_000, 100_000), help="in each of them")
    made.add_argument("--newest", type=positive, default=500_000, help="rows that most users edit")
    made.add_argument("--repeat", type=positive, default=2, help="runs of each measurement")
    made.add_argument("--many", type=int, default=0, help="changes of one last run, as in 10000000")
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.tables, options.changes, options.newest, options.repeat, options.many)
    if plan.too_large:
        sys.stderr.write("the tables have not as many different rows as the runs would edit\n")
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
