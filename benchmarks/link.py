"""`python -m benchmarks.link`: measure links beside the fastest script that one can write by hand for the same rows."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import databases, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.comparison import Plan, compare
from benchmarks.measurement import Start
from benchmarks.record import PAGE, record
from benchmarks.report import Grid
from demo import terminal
from demo.environment import PROJECT
from demo.progress import Progress


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when both programs wrote what the users had written."""
    options = _parser().parse_args(arguments)
    plan = _plan(options)
    if reasons := list(plan.too_large()):
        sys.stderr.write("\n".join(reasons) + "\n")
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.link", description=__doc__)
    made.add_argument("--table-rows", type=positive, default=7_000_000, help="rows of the large table")
    made.add_argument(
        "--changes", type=counts, default=(10, 1_000, 100_000, 1_000_000), help="as in 10,1000,1000000"
    )
    made.add_argument("--repeat", type=positive, default=2, help="runs of each measurement")
    made.add_argument("--quick", action="store_true", help="100,000 rows, two small numbers of changes, once")
    add_places(made, "link")
    return made


def _plan(options: argparse.Namespace) -> Plan:
    """Every number of changes in the large table; what it has room for also in a table of a fifth its size."""
    rows, changes, repeat = options.table_rows, options.changes, options.repeat
    if options.quick:
        rows, changes, repeat = 100_000, (10, 1_000), 1
    small = [count for count in changes if 5 * count * repeat * len(Start) <= rows]
    return Plan([(rows // 5, small), (rows, changes)], repeat)


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    console = terminal.console()
    with databases.in_workspace(directory) as made:
        results = compare(made, plan, directory, Progress(console))
        surroundings = report.surroundings(made.capetown, plan.repeat)
    grids = list(report.grids(results))
    _print(console, surroundings, grids)
    if recorded:
        record(PAGE, surroundings, grids, results.points)
        console.print(f"Recorded in {PAGE.relative_to(PROJECT)}.")
    return 0


def _print(console: Console, surroundings: str, grids: Sequence[Grid]) -> None:
    console.print(f"\n{surroundings}", highlight=False)
    for grid in grids:
        table = Table(*grid.head, title=grid.title, box=box.SIMPLE_HEAD, title_justify="left")
        for column in table.columns:
            column.justify = "right"
        for row in grid.rows:
            table.add_row(*row)
        console.print()
        console.print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
