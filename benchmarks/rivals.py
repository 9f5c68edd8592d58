"""`python -m benchmarks.rivals`: Concord, Bucardo and logical replication, side by side, on the same changes."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import bucardo, databases, logical_replication, packages, report, sustained
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import WARM_UP, Edits
from benchmarks.connected_run import server
from benchmarks.databases import Pair, ServerKind
from benchmarks.measurement import Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from benchmarks.rival import Program, Rival, concord, measure
from benchmarks.sustained import Sustained, sustain
from demo import terminal
from demo.progress import Progress

PART = "rivals"

BUCARDOS = (Program.BUCARDO, Program.TUNED)

#: So few changes take less than a second, which anything else on the machine doubles: they are measured more often.
FEW, ROUNDS_OF_FEW = 10_000, 5
_OFTEN = "Each number is the median of as many measurements as its line says, in brackets the range."

Seconds = Mapping[Program, list[float]]


@dataclass(frozen=True)
class Plan:
    """How many rows, how many changes in them, and how often on new servers; `FEW` changes in several rounds there.

    `transactions` are those of users who work all the while.
    """

    rows: int
    counts: Sequence[int]
    repeat: int
    transactions: int = 0

    @property
    def edits(self) -> Iterator[Edits]:
        """Sets of edits that share no row, the warm-up first."""
        before = 0
        for count in (WARM_UP, *self._measured):
            yield Edits(self.rows, count, before)
            before += count

    @property
    def too_large(self) -> bool:
        return sum(self._measured) + WARM_UP > self.rows

    @property
    def _measured(self) -> Iterator[int]:
        for count in self.counts:
            yield from [count] * (ROUNDS_OF_FEW if count <= FEW else 1)


@dataclass
class Results:
    """Seconds by the number of changes and the program, what each sustained, and where they were measured."""

    seconds: dict[int, Seconds] = field(default_factory=dict)
    sustained: dict[Program, list[Sustained]] = field(
        default_factory=lambda: {each: [] for each in sustained.PROGRAMS}
    )
    surroundings: str = ""

    def add(self, count: int, program: Program, seconds: float) -> None:
        of_count = self.seconds.setdefault(count, {each: [] for each in Program})
        of_count[program].append(seconds)


@contextmanager
def rivals(pair: Pair, rows: int, directory: Path, progress: Progress) -> Iterator[Sequence[Rival]]:
    """Every program at work on a pair of its own, all on the same two servers; ended when the block ends."""
    pairs = {program: pair.another(program.name.lower()) for program in Program}
    with progress.step(f"Make a table of {rows:,} rows in {2 * len(pairs)} databases"):
        databases.fill_pair(pair, rows)
        for each in pairs.values():
            databases.copy_pair(pair, each)
    with ExitStack() as stack:
        with progress.step("Start Spark, Bucardo and logical replication"):
            spark = stack.enter_context(server(directory))
            made = [
                concord(pairs[Program.WARM], Start.WARM, spark),
                concord(pairs[Program.COLD], Start.COLD, spark),
                *(
                    stack.enter_context(bucardo.at_work(each, pairs[each], directory / each.name.lower()))
                    for each in BUCARDOS
                ),
                stack.enter_context(logical_replication.subscribed(pairs[Program.LOGICAL])),
            ]
        yield made


def compare(plan: Plan, kind: ServerKind, directory: Path, progress: Progress) -> Results:
    """Measure everything. Raises WrongResult, or whatever made a program fail."""
    results = Results()
    for turn in range(plan.repeat):
        with databases.pair_in_workspace(directory, kind) as pair:
            with rivals(pair, plan.rows, directory, progress) as made:
                _repetition(plan, made[:: -1 if turn % 2 else 1], results, progress)
            results.surroundings = f"{report.machine(pair.london.version)} {_OFTEN}"
    return results


def _repetition(plan: Plan, made: Sequence[Rival], results: Results, progress: Progress) -> None:
    warm_up, *measured = plan.edits
    with progress.step("Warm up"):
        for rival in made:
            measure(rival, warm_up)
    for ordinal, edits in enumerate(measured):
        with progress.step(f"{edits.count:,} changes in {plan.rows:,} rows") as step:
            for rival in made[:: -1 if ordinal % 2 else 1]:
                seconds = measure(rival, edits)
                results.add(edits.count, rival.program, seconds)
                step.result += f" {rival.program} {seconds:.1f} s;"
    if plan.transactions:
        _sustain(plan, made, results, progress)


def _sustain(plan: Plan, made: Sequence[Rival], results: Results, progress: Progress) -> None:
    with progress.step(f"{plan.transactions:,} updates of single rows, all the while") as step:
        for rival in made:
            if (of_program := results.sustained.get(rival.program)) is not None:
                of_program.append(sustain(rival, plan.rows, plan.transactions))
                step.result += f" {rival.program} {of_program[-1].rate:,.0f}/s;"


def grid(rows: int, seconds: Mapping[int, Seconds]) -> Grid:
    """A line for each number of changes; a ratio above 1: Concord is the faster one.

    It is that of each two that carried the same edits: what else the machine does meanwhile hits both.
    """
    ratios = [(rival, each) for rival in BUCARDOS for each in (Program.WARM, Program.COLD)]
    head = (
        "changes",
        "measured",
        *(f"{each}, s" for each in Program),
        *(f"{rival} / {each}" for rival, each in ratios),
    )
    lines = []
    for count, measured in seconds.items():
        lines.append(
            (
                f"{count:,}",
                str(len(measured[Program.WARM])),
                *(report.spread(Spread.of(measured[program])) for program in Program),
                *(report.spread(_ratios(measured[rival], measured[each])) for rival, each in ratios),
            )
        )
    return Grid(f"Until both databases are equal, a table of {rows:,} rows", head, lines)


def _ratios(rival: Sequence[float], ours: Sequence[float]) -> Spread:
    return Spread.of([one / other for one, other in zip(rival, ours, strict=True)])


def _measure(directory: Path, plan: Plan, kind: ServerKind, *, recorded: bool) -> int:
    results = compare(plan, kind, directory, Progress(terminal.console()))
    grids = [grid(plan.rows, results.seconds)]
    if plan.transactions:
        grids.append(sustained.grid(plan.transactions, results.sustained))
    text = "\n\n".join([results.surroundings, *map(markdown, grids)])
    publish(PART, text, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every program carried what the users had written."""
    options = _parser().parse_args(arguments)
    plan = Plan(options.table_rows, options.changes, options.repeat, options.transactions)
    if plan.too_large:
        sys.stderr.write(
            f"a table of {plan.rows:,} rows has not as many different rows as the runs would edit\n"
        )
        return 2
    if plan.transactions % sustained.SHARES:
        sys.stderr.write(f"{plan.transactions} transactions are no multiple of {sustained.SHARES}\n")
        return 2
    try:
        version, binaries = packages.newest_with_perl()
    except packages.NotInstalled as error:
        sys.stderr.write(f"{error}\n")
        return 2
    kind = ServerKind(version, binaries, {**databases.SETTINGS, **logical_replication.SETTINGS})
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, kind, recorded=options.record), directory)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    made.add_argument("--table-rows", type=positive, default=2_000_000, help="rows of the table")
    made.add_argument(
        "--changes", type=counts, default=(1_000, 100_000, 1_000_000), help="as in 10,1000,1000000"
    )
    made.add_argument("--repeat", type=positive, default=3, help="how often on new servers")
    made.add_argument("--transactions", type=int, default=40_000, help="of users who work meanwhile; 0: none")
    add_places(made, PART)
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
