"""`python -m benchmarks.resident`: links that start a Spark of their own beside links handed to one that stays."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, initialization, report
from benchmarks.bookings import Edits
from benchmarks.comparison import WrongResult, check
from benchmarks.databases import Databases
from benchmarks.link_run import run_link
from benchmarks.measurement import Spread
from benchmarks.record import markdown, put
from benchmarks.report import Grid
from concord.link import Direction
from demo import terminal, workspace
from demo.environment import PROJECT
from demo.progress import Progress
from spark_jobs.handover import RESIDENT

PAGE = PROJECT / "docs" / "benchmarks.md"
HEAD = ("changes", "own Spark, s", "Spark that stays, s", "ratio")


@dataclass
class Pace:
    """Seconds of whole processes, from submission to end, with so many changes to carry."""

    changes: int
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        cold, warm = Spread.of(self.cold), Spread.of(self.warm)
        return (f"{self.changes:,}", _shown(cold), _shown(warm), f"{warm.median / cold.median:.2f}")


def _shown(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})"


@dataclass
class Measuring:
    """One table in two databases; every run of a link carries edits that no other run has."""

    made: Databases
    rows: int
    place: Path
    edited: int = 0

    def begin(self) -> None:
        databases.fill(self.made, self.rows)
        initialization.initialize(self.made)
        for _ in range(2):  # files are read and Java has seen a link before anything is measured
            self._seconds(10, warm=True)

    def pace(self, changes: int, repeat: int) -> Pace:
        """Raises WrongResult when a link reports other rows than were edited, or the sites differ."""
        found = Pace(changes)
        for _ in range(repeat):
            found.cold.append(self._seconds(changes, warm=False))
            found.warm.append(self._seconds(changes, warm=True))
        return found

    def _seconds(self, changes: int, *, warm: bool) -> float:
        edits = Edits(self.rows, changes, self.edited)
        if changes:
            self.edited += changes
            self.made.london.run(*edits.statements, "VACUUM (ANALYZE)")
            self.made.capetown.run("VACUUM (ANALYZE)", "CHECKPOINT")
        with _environment(self.place if warm else None):
            run = run_link(initialization.job(self.made))
        if run.report.total("applied") != changes:
            raise WrongResult(f"{changes} rows were edited, but the link reports {run.report.tables}")
        if changes:
            self._check(edits)
        return run.measurement.wall

    def _check(self, edits: Edits) -> None:
        """The reverse link brings both positions to rest, and finds nothing to do."""
        with _environment(self.place):
            run_link(initialization.job(self.made, Direction.REVERSE))
        check((self.made.london, self.made.capetown), edits)


@contextmanager
def _environment(place: Path | None) -> Iterator[None]:
    """With or without a Spark that stays."""
    if place is not None:
        os.environ[RESIDENT] = str(place)
    try:
        yield
    finally:
        os.environ.pop(RESIDENT, None)


@contextmanager
def resident(place: Path, log: Path) -> Iterator[None]:
    """A Spark that stays and listens at `place`."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_jobs.resident", place], cwd=PROJECT, stdout=output, stderr=output
        )
    try:
        while not place.exists():
            if process.poll() is not None:
                raise WrongResult(f"the resident driver ended; its output: {log}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def measure(made: Databases, directory: Path, plan: "Plan", progress: Progress) -> list[Pace]:
    """Every number of changes, by a Spark that has already carried some. Raises what `Measuring.pace` raises."""
    place = directory / "spark"
    with resident(place, directory / "spark.log"):
        measuring = Measuring(made, plan.rows, place)
        with progress.step(f"Make a table of {plan.rows:,} rows, and start Spark"):
            measuring.begin()
        found = []
        for changes in plan.changes:
            with progress.step(f"{changes:,} changes, {plan.repeat} times each") as step:
                found.append(measuring.pace(changes, plan.repeat))
                step.result = " · ".join(found[-1].cells[1:])
    return found


@dataclass(frozen=True)
class Plan:
    """How large a table, which numbers of changes, and how often each."""

    rows: int
    changes: Sequence[int]
    repeat: int


def grid(paces: Sequence[Pace]) -> Grid:
    """A line for each number of changes."""
    return Grid("Whole links, from submission to end", HEAD, [pace.cells for pace in paces])


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what was edited."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.resident", description=__doc__)
    made.add_argument("--rows", type=int, default=1_000_000, help="of the table")
    made.add_argument(
        "--changes", type=_counts, default=(0, 10, 1_000, 10_000, 50_000), help="as in 0,10,1000"
    )
    made.add_argument("--repeat", type=int, default=5, help="runs of each, cold and warm in turn")
    made.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    made.add_argument(
        "--directory", type=Path, default=workspace.DEFAULT / "resident", help="for the servers"
    )
    options = made.parse_args(arguments)
    directory, plan = options.directory.absolute(), Plan(options.rows, options.changes, options.repeat)
    return terminal.run(lambda: _report(directory, plan, recorded=options.record), directory)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _report(directory: Path, plan: Plan, *, recorded: bool) -> int:
    with workspace.workspace(directory):
        try:
            with databases.running(directory) as servers:
                paces = measure(servers, directory, plan, Progress(terminal.console()))
                results = [report.surroundings(servers.capetown, plan.repeat), markdown(grid(paces))]
        finally:
            workspace.clear(directory)
    sys.stdout.write("\n\n".join(["", *results, ""]))
    if recorded:
        put(PAGE, "resident", "\n\n".join(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
