"""`python -m benchmarks.tables`: links of a set with few tables and of one with many, of which equally few changed."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, initialization, report
from benchmarks.arguments import add_places
from benchmarks.comparison import WrongResult, started
from benchmarks.connected_run import server
from benchmarks.databases import Databases, Pair
from benchmarks.link_run import run_link
from benchmarks.measurement import Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.databases.provisioning import provision
from concord.tables.replication_set import ReplicatedTable, TableName
from demo import terminal
from demo.progress import Progress

PART = "tables"
ROWS = 1_000

#: Of a set that has nothing, or a few rows, to send. No Spark carries so few.
STARTS = (Start.COLD, Start.WARM)


@dataclass
class Set:
    """A replication set of so many tables, and the seconds of each link, with nothing changed and with a few tables."""

    tables: tuple[ReplicatedTable, ...]
    seconds: dict[tuple[Start, bool], list[float]] = field(default_factory=dict)


def named(count: int) -> tuple[ReplicatedTable, ...]:
    """Tables `t0`, `t1`, …"""
    return tuple(
        ReplicatedTable(table=TableName(schema_name="public", name=f"t{number}")) for number in range(count)
    )


def make(made: Pair, tables: Sequence[ReplicatedTable]) -> None:
    """Both databases anew with these tables, provisioned and equal."""
    for each in (made.london, made.capetown):
        each.server.drop_database(each.name)
        each.server.create_database(each.name)
        for table in tables:
            each.run(
                f"CREATE TABLE {table.name} (id int PRIMARY KEY, miles int, note text)",
                f"INSERT INTO {table.name} SELECT n, 0, md5(n::text) FROM generate_series(1, {ROWS}) n",
            )
        each.run("VACUUM (ANALYZE)")
    provision([initialization.installation(each, *tables) for each in (made.london, made.capetown)])
    initialization.declare_equal(initialization.job(made, tables=tables))


def measure(made: Databases, chosen: Set, changed: int, repeat: int, url: str) -> None:
    """Both kinds of start in turn. Raises WrongResult when a link reports other rows than were changed."""
    for turn in range(repeat + 1):
        for start in STARTS:
            for some in (False, True):
                if some:
                    _change(made, chosen.tables[:changed])
                seconds = _seconds(made, chosen, start, changed * 10 if some else 0, url)
                if turn:  # the first of each reads programs and libraries from the disk
                    chosen.seconds.setdefault((start, some), []).append(seconds)


def _change(made: Databases, tables: Sequence[ReplicatedTable]) -> None:
    made.london.run(*(f"UPDATE {table.name} SET miles = miles + 1 WHERE id <= 10" for table in tables))


def _seconds(made: Databases, chosen: Set, start: Start, expected: int, url: str) -> float:
    with started(start, url):
        run = run_link(initialization.job(made, tables=chosen.tables))
    if run.report.total("applied") != expected:
        raise WrongResult(f"{expected} rows were changed, but the link reports {run.report.tables}")
    return run.measurement.wall


def grid(sets: Sequence[Set], changed: int) -> Grid:
    """A line for each set."""
    head = (
        "tables",
        *(f"{start}, {what}, s" for start in STARTS for what in ("nothing", f"{changed} changed")),
    )
    rows = []
    for each in sets:
        cells = (
            report.spread(Spread.of(each.seconds[start, some])) for start in STARTS for some in (False, True)
        )
        rows.append((f"{len(each.tables):,}", *cells))
    return Grid("Whole links, from submission to end, by tables in the set", head, rows)


def _measure(directory: Path, counts: Sequence[int], changed: int, repeat: int, *, recorded: bool) -> int:
    progress = Progress(terminal.console())
    sets = [Set(named(count)) for count in counts]
    with databases.in_workspace(directory) as made:
        with server(directory) as url:
            for each in sets:
                with progress.step(f"Make {len(each.tables)} tables"):
                    make(made, each.tables)
                with progress.step(f"{changed} of {len(each.tables)} tables, {repeat} times"):
                    measure(made, each, changed, repeat, url)
        results = "\n\n".join([report.surroundings(made.capetown, repeat), markdown(grid(sets, changed))])
    publish(PART, results, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what was changed."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    made.add_argument("--tables", type=_counts, default=(3, 500), help="tables in a set, as in 3,500")
    made.add_argument("--changed", type=int, default=3, help="of them changed")
    made.add_argument("--repeat", type=int, default=3, help="runs of each")
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(
        lambda: _measure(directory, options.tables, options.changed, options.repeat, recorded=options.record),
        directory,
    )


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
