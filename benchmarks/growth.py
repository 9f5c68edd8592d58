"""`python -m benchmarks.growth`: the same changes in a small and in a large table."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
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

#: So few changes are carried in a moment, which other things of a machine's easily double: each is measured OFTEN.
FEW, OFTEN = 1_000, 9

#: A query by an index keeps in memory what it reads; one of a whole large table does not.
_BY_INDEX = (
    *(f"SET enable_{each} = off" for each in ("seqscan", "bitmapscan")),
    "SET max_parallel_workers_per_gather = 0",
)


@dataclass(frozen=True)
class Part:
    """Rows of a table that are edited. No two parts share a row, or the key of a new one."""

    name: str
    rows: int  #: of the table
    first: int
    size: int
    passed: int = 0  #: edits that nobody makes, so that no other part has the keys of its new rows


@dataclass(frozen=True)
class Plan:
    """The same changes in a small table, in as many of the newest rows of a large one, and in its older ones."""

    small: int
    large: int
    changes: Sequence[int]
    repeat: int

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is edited is alike in the first two: they differ in the size of the table alone."""
        small, large = f"{self.small:,} rows", f"{self.large:,} rows"
        older = self.large - self.small
        return (
            Part(small, self.small, 1, self.small),
            Part(f"{large}, the newest {self.small:,} edited", self.large, older + 1, self.small),
            Part(f"{large}, older ones edited", self.large, 1, older, 2 * self.small),
        )

    @property
    def too_large(self) -> bool:
        """No row may be edited twice."""
        last = list(self.edits(self.parts[0]))[-1]
        return last.before + last.touched > self.small or 2 * self.small > self.large

    def edits(self, part: Part) -> Iterator[Edits]:
        """Sets of edits of a part; the first is one that nobody measures."""
        before = part.passed
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
        tables = {rows: _table(pair, rows, progress) for rows in (plan.small, plan.large)}
        with started(Start.WARM, spark):
            _measure_parts(tables, plan, results, progress)
    return results


def _table(pair: Pair, rows: int, progress: Progress) -> Pair:
    with progress.step(f"Make a table of {rows:,} rows in two databases"):
        made = pair.another(f"{rows}")
        databases.fill_pair(made, rows)
        initialize(made)
    return made


def _measure_parts(tables: Mapping[int, Pair], plan: Plan, results: Results, progress: Progress) -> None:
    """In turn: whatever else the machine does meets all of them."""
    warm_up, *rounds = zip(*(plan.edits(part) for part in plan.parts), strict=True)
    for edits in warm_up:
        carry(tables[edits.rows], edits)
    for each in rounds:
        for part, edits in zip(plan.parts, each, strict=True):
            with progress.step(f"{edits.count:,} changes in {part.name}") as step:
                _read(tables[part.rows], part.rows - plan.small)
                seconds = carry(tables[part.rows], edits).wall
                results.add(edits.count, part, seconds)
                step.result = f"{seconds:.2f} s"


def _read(pair: Pair, older: int) -> None:
    """Have in memory what a database in use has there: the indexes, and the newest rows."""
    indexed, newest = "count(flight)", f"count(remarks) FROM public.bookings WHERE id > {older}"
    pair.everywhere(
        *_BY_INDEX, f"SELECT {indexed} FROM public.bookings WHERE flight >= 0", f"SELECT {newest}"
    )


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
    small, *others = plan.parts
    head = ["changes", f"{small.name}, s"]
    for part in others:
        head += [f"{part.name}, s", "ratio"]
    lines = []
    for count, by_part in results.seconds.items():
        spreads = {part: Spread.of(by_part[part]) for part in plan.parts}
        cells = [f"{count:,}", report.spread(spreads[small])]
        for part in others:
            cells += [report.spread(spreads[part]), report.ratio(spreads[part], spreads[small])]
        lines.append(cells)
    return Grid("Whole warm links, from submission to end, by rows in the table", head, lines)


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with resident(directory) as spark:
            results = compare(pair, plan, spark, Progress(terminal.console()))
        where = report.surroundings(pair.another(f"{plan.small}").london, plan.repeat)
    publish(PART, "\n\n".join([where, markdown(grid(plan, results))]), recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what the users had written."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    made.add_argument("--small", type=positive, default=1_000_000, help="rows of one table")
    made.add_argument("--large", type=positive, default=10_000_000, help="rows of the other one")
    made.add_argument(
        "--changes", type=counts, default=(10, 1_000, 100_000, 1_000_000), help="in each of them"
    )
    made.add_argument("--repeat", type=positive, default=3, help="tables made for each measurement")
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.small, options.large, options.changes, options.repeat)
    if plan.too_large:
        sys.stderr.write(
            "the small table has not as many rows as the runs would edit, or the large one has not twice as many\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
