"""`python -m benchmarks.growth`: the same changes in a small and in a large table."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
MEDIANS = "Each number is the median of its rounds, in brackets the range; a ratio is that of two times of one round."

#: So few changes are carried in a moment, which other things of a machine's easily double: each is measured OFTEN.
FEW, OFTEN = 1_000, 9

#: A query by an index leaves what it reads in memory; one of a whole large table does not.
BY_INDEX = (
    *(f"SET enable_{each} = off" for each in ("seqscan", "bitmapscan")),
    "SET max_parallel_workers_per_gather = 0",
)


@dataclass(frozen=True)
class Part:
    """A table, and its rows that are edited."""

    name: str
    table: str  #: what its databases are called after
    rows: int
    first: int
    size: int
    recent: int  #: so many of the newest rows are in memory


@dataclass(frozen=True)
class Plan:
    """The same changes in a small table, in as many of the newest rows of a large one, and in all of another."""

    small: int
    large: int
    changes: Sequence[int]
    repeat: int
    few: int = FEW

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is edited is alike in the first two: they differ in the size of the table alone."""
        name, newest = f"{self.large:,} rows", f"the newest {self.small:,} edited"
        older = self.large - self.small
        return (
            Part(f"{self.small:,} rows", "small", self.small, 1, self.small, self.small),
            Part(f"{name}, {newest}", "newest", self.large, older + 1, self.small, self.small),
            Part(f"{name}, all edited", "large", self.large, 1, self.large, self.small),
        )

    @property
    def too_large(self) -> bool:
        """No row may be edited twice."""
        last = list(self.edits(self.parts[0]))[-1]
        return last.before + last.touched > self.small or self.small > self.large

    def edits(self, part: Part) -> Iterator[Edits]:
        """Sets of edits of a part; the first is one that nobody measures."""
        before = 0
        for count in (
            WARM_UP,
            *(each for each in self.changes for _ in range(OFTEN if each <= self.few else 1)),
        ):
            yield Edits(part.rows, count, before, part.first, part.size)
            before += Edits(part.rows, count).touched

    def rounds(self, turn: int) -> Iterator[Sequence[tuple[Part, Edits]]]:
        """The same number of changes in every part, each time another one first."""
        for ordinal, edits in enumerate(zip(*(self.edits(part) for part in self.parts), strict=True)):
            first = (turn + ordinal) % len(self.parts)
            each = list(zip(self.parts, edits, strict=True))
            yield [*each[first:], *each[:first]]


#: Of a warm link in each part, by number of changes: those of every round.
Seconds = dict[int, list[dict[Part, float]]]


def compare(pair: Pair, plan: Plan, spark: Path, progress: Progress) -> Seconds:
    """Measure the plan, each time on new tables. Raises WrongResult, or whatever made a link fail."""
    seconds: Seconds = {}
    for turn in range(plan.repeat):
        tables = {part: pair.another(part.table) for part in plan.parts}
        _fill(tables, progress)
        with started(Start.WARM, spark):
            warm_up, *rounds = plan.rounds(turn)
            _measure_parts(tables, warm_up, progress)
            for each in rounds:
                found = _measure_parts(tables, each, progress)
                seconds.setdefault(each[0][1].count, []).append(found)
    return seconds


def _fill(tables: Mapping[Part, Pair], progress: Progress) -> None:
    """Begin anew. Of two tables of the same size one is a copy of the other's files."""
    filled: dict[int, Pair] = {}
    for part, pair in tables.items():
        with progress.step(f"Make a table of {part.rows:,} rows in two databases"):
            if part.rows not in filled:
                databases.fill_pair(pair, part.rows)
                filled[part.rows] = pair
            else:
                databases.copy_pair(filled[part.rows], pair)
    for pair in tables.values():
        initialize(pair)


def _measure_parts(
    tables: Mapping[Part, Pair], each: Sequence[tuple[Part, Edits]], progress: Progress
) -> dict[Part, float]:
    """In turn: whatever else the machine does meets all of them."""
    seconds = {}
    for part, edits in each:
        with progress.step(f"{edits.count:,} changes in {part.name}") as step:
            seconds[part] = carry(tables[part], edits, reading(part)).wall
            step.result = f"{seconds[part]:.2f} s"
    return seconds


def reading(part: Part) -> tuple[str, ...]:
    """Have in memory what a database in use has there: the indexes, and the newest rows."""
    return (
        *BY_INDEX,
        "SELECT count(id) FROM public.bookings WHERE id > 0",
        "SELECT count(flight) FROM public.bookings WHERE flight >= 0",
        f"SELECT count(remarks) FROM public.bookings WHERE id > {part.rows - part.recent}",
    )


def carry(pair: Pair, edits: Edits, before: Sequence[str] = ()) -> Measurement:
    """Edit London, run the statements everywhere, carry the edits to Cape Town.

    Raises WrongResult when not every edit was carried.
    """
    pair.everywhere("VACUUM (ANALYZE)")
    pair.london.run(*edits.statements, "VACUUM (ANALYZE)")
    pair.everywhere(*before, "CHECKPOINT")
    run = run_link(job(pair))
    if run.report.total("applied") != edits.count:
        raise WrongResult(f"{edits.count} rows were edited, but the link reports {run.report.tables}")
    check(pair.all, edits)
    return run.measurement


def grid(plan: Plan, seconds: Seconds) -> Grid:
    """A line for each number of changes; a ratio is that to the small table in the same round."""
    small, *others = plan.parts
    head = ["changes", "rounds", f"{small.name}, s"]
    for part in others:
        head += [f"{part.name}, s", "ratio"]
    lines = []
    for count, rounds in seconds.items():
        cells = [f"{count:,}", str(len(rounds)), _spread(each[small] for each in rounds)]
        for part in others:
            cells += [_spread(each[part] for each in rounds)]
            cells += [_spread(each[part] / each[small] for each in rounds)]
        lines.append(cells)
    return Grid("Whole warm links, from submission to end, by rows in the table", head, lines)


def _spread(numbers: Iterable[float]) -> str:
    return report.spread(Spread.of(list(numbers)))


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with resident(directory) as spark:
            seconds = compare(pair, plan, spark, Progress(terminal.console()))
        where = report.machine(pair.another(plan.parts[0].table).london.version)
    publish(PART, f"{where} {MEDIANS}\n\n{markdown(grid(plan, seconds))}", recorded=recorded)
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
    made.add_argument(
        "--few",
        type=positive,
        default=FEW,
        help=f"so many and fewer changes are measured {OFTEN} times a table",
    )
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.small, options.large, options.changes, options.repeat, options.few)
    if plan.too_large:
        sys.stderr.write(
            "the small table, or the large one, has not as many different rows as the runs would edit\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
