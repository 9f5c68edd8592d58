"""`python -m benchmarks.growth`: the same changes in a small and in a large table, by a link and by hand."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import by_hand, databases, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import Edits
from benchmarks.comparison import carrying, check, edit, started
from benchmarks.connected_run import server
from benchmarks.databases import Databases, Pair, ServerKind
from benchmarks.growth_plan import FEW, OFTEN, Part, Plan
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from demo import terminal
from demo.progress import Progress

PART = "growth"
MEDIANS = "Each number is the median of its rounds, in brackets the range; a ratio is that of two times of one round."

#: A query by an index leaves what it reads in memory; one of a whole large table does not.
BY_INDEX = (
    *(f"SET enable_{each} = off" for each in ("seqscan", "bitmapscan")),
    "SET max_parallel_workers_per_gather = 0",
)


@dataclass(frozen=True)
class Times:
    """Seconds of a warm link, and of a script by hand, for the same edits."""

    link: float
    by_hand: float


#: In each part, by number of changes: those of every round.
Seconds = dict[int, list[dict[Part, Times]]]


def compare(pair: Pair, plan: Plan, spark: str, progress: Progress) -> Seconds:
    """Measure the plan. Raises WrongResult, or whatever made a link or psql fail."""
    seconds: Seconds = {}
    made = _make(pair, plan, progress)
    for sitting in range(len(plan.sittings)):
        tables = {part: _sites(pair, part) for part in plan.parts}
        _begin_anew(made, tables, progress)
        with started(Start.WARM, spark):
            warm_up, *rounds = plan.rounds(sitting)
            _measure_parts(tables, warm_up, progress, link_first=True)
            for ordinal, each in enumerate(rounds):
                found = _measure_parts(tables, each, progress, link_first=plan.link_first(sitting, ordinal))
                seconds.setdefault(each[0][1].count, []).append(found)
    return seconds


def _make(pair: Pair, plan: Plan, progress: Progress) -> Mapping[int, Pair]:
    """By number of rows: two databases that nobody edits."""
    made = {rows: pair.another(f"of_{rows}") for rows in (plan.small, plan.large)}
    for rows, each in made.items():
        with progress.step(f"Make a table of {rows:,} rows in two databases"):
            databases.fill_pair(each, rows)
    return made


def _sites(pair: Pair, part: Part) -> Databases:
    """The three databases of a part."""
    sites = pair.another(part.table)
    by_hand_there = replace(pair.capetown, name=f"{databases.BY_HAND}_{part.table}")
    return Databases(sites.london, sites.capetown, by_hand_there)


def _begin_anew(made: Mapping[int, Pair], tables: Mapping[Part, Databases], progress: Progress) -> None:
    """Every part gets databases with the same files."""
    for part, each in tables.items():
        with progress.step(f"Copy them for {part.name}"):
            databases.copy_all(made[part.rows], each)
            initialize(each)
            by_hand.prepare(each)


def _measure_parts(
    tables: Mapping[Part, Databases],
    each: Sequence[tuple[Part, Edits]],
    progress: Progress,
    *,
    link_first: bool,
) -> dict[Part, Times]:
    """In turn: whatever else the machine does meets all of them."""
    seconds = {}
    for part, edits in each:
        with progress.step(f"{edits.count:,} changes in {part.name}") as step:
            seconds[part] = found = _measure_both(tables[part], edits, reading(part), link_first=link_first)
            step.result = f"{found.link:.2f} s, by hand {found.by_hand:.2f} s"
    return seconds


def _measure_both(made: Databases, edits: Edits, before: Sequence[str], *, link_first: bool) -> Times:
    """The statements before are run for each; the second finds what the first has read, too. Raises WrongResult."""
    edit(made, edits)
    walls = {}
    for target in (made.capetown, made.by_hand) if link_first else (made.by_hand, made.capetown):
        Pair(made.london, target).everywhere(*before)
        made.everywhere("CHECKPOINT")
        run = by_hand.run_by_hand(made) if target is made.by_hand else carrying(run_link(job(made)), edits)
        walls[target] = run.wall
    check(made.all, edits)
    return Times(link=walls[made.capetown], by_hand=walls[made.by_hand])


def reading(part: Part) -> tuple[str, ...]:
    """Have in memory what a database in use has there: the indexes, and the newest rows."""
    return (
        *BY_INDEX,
        "SELECT count(id) FROM public.bookings WHERE id > 0",
        "SELECT count(flight) FROM public.bookings WHERE flight >= 0",
        f"SELECT count(remarks) FROM public.bookings WHERE id > {part.rows - part.recent}",
    )


def grid(plan: Plan, seconds: Seconds) -> Grid:
    """A line for each number of changes in each part; a ratio is that to the small table in the same round."""
    small = plan.parts[0]
    head = ["changes", "table", "rounds", "link, s", "ratio", "by hand, s", "ratio"]
    lines = []
    for count, rounds in seconds.items():
        for part in plan.parts:
            link = _beside([(each[part].link, each[small].link) for each in rounds])
            hand = _beside([(each[part].by_hand, each[small].by_hand) for each in rounds])
            lines.append([f"{count:,}", part.name, str(len(rounds)), *link, *hand])
    return Grid("Warm links, and scripts by hand, by rows in the table", head, lines)


def _beside(seconds: Sequence[tuple[float, float]]) -> tuple[str, str]:
    """Of each round: those in a part, and those in the small table; the first, and their ratio."""
    return _spread(one for one, _ in seconds), _spread(one / small for one, small in seconds)


def _spread(numbers: Iterable[float]) -> str:
    return report.spread(Spread.of(list(numbers)))


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with server(directory) as spark:
            seconds = compare(pair, plan, spark, Progress(terminal.console()))
        where = report.machine(pair.another(plan.parts[0].table).london.version)
    publish(PART, f"{where} {MEDIANS}\n\n{markdown(grid(plan, seconds))}", recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when links and scripts carried what the users had written."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    made.add_argument("--small", type=positive, default=1_000_000, help="rows of one table")
    made.add_argument("--large", type=positive, default=10_000_000, help="rows of the other one")
    made.add_argument(
        "--changes", type=counts, default=(10, 1_000, 100_000, 1_000_000), help="in each of them"
    )
    made.add_argument("--repeat", type=positive, default=3, help="runs of each larger number of changes")
    made.add_argument(
        "--few",
        type=positive,
        default=FEW,
        help=f"so many and fewer changes are measured {OFTEN} times",
    )
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.small, options.large, options.changes, options.repeat, options.few)
    if plan.too_large:
        sys.stderr.write(
            "the small table, or the large one, has not as many different rows as one run would edit\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
