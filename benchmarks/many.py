"""`python -m benchmarks.many`: one cold link with very many changes, for the memory that it takes."""

import argparse
import sys
from pathlib import Path

from benchmarks import databases, report
from benchmarks.arguments import add_places, changes
from benchmarks.bookings import Edits
from benchmarks.comparison import carrying, check, edit, started
from benchmarks.databases import Pair, ServerKind
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Measurement, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from demo import terminal
from demo.progress import Progress

PART = "many"


def grid(count: int, measured: Measurement) -> Grid:
    """One line."""
    cells = (f"{count:,}", f"{measured.wall:.1f}", report.mebibytes(measured.memory))
    return Grid("One cold link with very many changes", ("changes", "s", "memory, MiB"), [cells])


def _measure(directory: Path, count: int, *, recorded: bool) -> int:
    progress = Progress(terminal.console())
    with databases.pair_in_workspace(directory, ServerKind()) as pair:
        with progress.step(f"Make a table of {count:,} rows in two databases"):
            databases.fill_pair(pair, count)
            initialize(pair)
        with progress.step(f"{count:,} changes in {count:,} rows") as step:
            with started(Start.COLD, ""):
                measured = _carry(pair, Edits(count, count))
            step.result = f"{measured.wall:.1f} s, {report.mebibytes(measured.memory)} MiB"
        text = "\n\n".join([report.surroundings(pair.london, 1), markdown(grid(count, measured))])
    publish(PART, text, recorded=recorded)
    return 0


def _carry(pair: Pair, edits: Edits) -> Measurement:
    """Raises WrongResult when not every edit was carried."""
    edit(pair, edits)
    pair.everywhere("CHECKPOINT")
    measured = carrying(run_link(job(pair)), edits)
    check(pair.all, edits)
    return measured


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every change was carried."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.many", description=__doc__)
    made.add_argument("--changes", type=changes, default=10_000_000, help="nearly every row of as many")
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options.changes, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
