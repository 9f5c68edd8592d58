"""`python -m benchmarks.growth`: the same changes in a small and in a large table."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import UNINDEX, WARM_UP, Edits
from benchmarks.comparison import WrongResult, check, resident, started
from benchmarks.databases import Pair, ServerKind
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Measurement, Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from demo import terminal
from demo.progress import Progress

PART, UNINDEXED = "growth", "growth_unindexed"

#: So few changes are carried in a moment, which other things of a machine's easily double: each is measured OFTEN.
FEW, OFTEN = 1_000, 3


@dataclass(frozen=True)
class Part:
    """The rows of a table that are edited."""

    name: str
    rows: int  #: of the table
    first: int
    size: int


@dataclass(frozen=True)
class Plan:
    """The same changes in all rows of a small table, in as many of the newest of a large one, and in all of its own."""

    small: int
    large: int
    changes: Sequence[int]
    repeat: int
    indexed: bool = True  #: by more than the primary key

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is edited is alike in the first two: they differ in the size of the table alone."""
        newest = Part(f"the newest {self.small:,}", self.large, self.large - self.small + 1, self.small)
        return (
            Part("all", self.small, 1, self.small),
            newest,
            Part("all", self.large, 1, self.large),
        )

    @property
    def too_large(self) -> bool:
        """No row may be edited twice."""
        last = list(self.edits(self.parts[0]))[-1]
        return last.before + last.touched > self.small or self.small > self.large

    def edits(self, part: Part) -> Iterator[Edits]:
        """Sets of edits of a part; the first is one that nobody measures."""
        before = 0
        for count in (WARM_UP, *(each for each in self.changes for _ in range(OFTEN if each <= FEW else 1))):
            yield Edits(part.rows, count, before, part.first, part.size)
            before += Edits(part.rows, count).touched


@dataclass
class Results:
    """Seconds of warm links by changes and part."""

    seconds: dict[int, dict[Part, list[float]]] = field(default_factory=dict)

    def add(self, count: int, part: Part, seconds: float) -> None:
        self.seconds.setdefault(count, {}).setdefault(part, []).append(seconds)


def compare(pair: Pair, plan: Plan, spark: Path, progress: Progress) -> Results:
    """Measure the plan, each time on new tables. Raises WrongResult, or whatever made a link fail."""
    results = Results()
    for _ in range(plan.repeat):
        for part in plan.parts:
            _measure_part(pair, plan, part, spark, results, progress)
    return results


def _measure_part(
    pair: Pair, plan: Plan, part: Part, spark: Path, results: Results, progress: Progress
) -> None:
    with progress.step(f"Make a table of {part.rows:,} rows in two databases"):
        databases.fill_pair(pair, part.rows)
        if not plan.indexed:
            pair.everywhere(UNINDEX)
        initialize(pair)
    warm_up, *measured = plan.edits(part)
    with started(Start.WARM, spark):
        carry(pair, warm_up)
        for edits in measured:
            with progress.step(f"{edits.count:,} changes in {part.name} of {part.rows:,} rows") as step:
                seconds = carry(pair, edits).wall
                results.add(edits.count, part, seconds)
                step.result = f"{seconds:.2f} s"


def carry(pair: Pair, edits: Edits) -> Measurement:
    """Edit London, carry it to Cape Town. Raises WrongResult when not every edit was carried."""
    pair.everywhere("VACUUM (ANALYZE)")
    pair.london.run(*edits.statements, "VACUUM (ANALYZE)")
    pair.everywhere("CHECKPOINT")
    run = run_link(job(pair))
    if run.report.total("applied") != edits.count:
        raise WrongResult(f"{edits.count} rows were edited, but the link reports {run.report.tables}")
    check(pair.all, edits)
    return run.measurement


def grid(plan: Plan, results: Results) -> Grid:
    """A line for each number of changes; a ratio is that to the small table."""
    small, newest, every = plan.parts
    head = ["changes", f"{small.rows:,} rows, s"]
    for part in (newest, every):
        head += [f"{part.rows:,} rows, {part.name} edited, s", "ratio"]
    lines = []
    for count, by_part in results.seconds.items():
        spreads = {part: Spread.of(by_part[part]) for part in plan.parts}
        cells = [f"{count:,}", report.spread(spreads[small])]
        for part in (newest, every):
            cells += [report.spread(spreads[part]), report.ratio(spreads[part], spreads[small])]
        lines.append(cells)
    title = "Whole warm links, from submission to end, by rows in the table"
    return Grid(title if plan.indexed else f"{title}, which has a primary key alone", head, lines)


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with resident(directory) as spark:
            results = compare(pair, plan, spark, Progress(terminal.console()))
        text = "\n\n".join([report.surroundings(pair.london, plan.repeat), markdown(grid(plan, results))])
    publish(PART if plan.indexed else UNINDEXED, text, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what the users had written."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    made.add_argument("--small", type=positive, default=1_000_000, help="rows of one table")
    made.add_argument("--large", type=positive, default=10_000_000, help="rows of the other one")
    made.add_argument(
        "--changes", type=counts, default=(10, 1_000, 100_000, 1_000_000), help="in each of them"
    )
    made.add_argument("--repeat", type=positive, default=2, help="tables made for each measurement")
    made.add_argument("--unindexed", action="store_true", help="tables with a primary key alone")
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.small, options.large, options.changes, options.repeat, not options.unindexed)
    if plan.too_large:
        sys.stderr.write(
            "the small table, or the large one, has not as many different rows as the runs would edit\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
