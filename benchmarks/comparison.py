"""Measure a link and a script by hand on the same edits, in turn, and check that they wrote what the users wrote."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import by_hand
from benchmarks.bookings import CONTENT, WARM_UP, Edits
from benchmarks.connected_run import server
from benchmarks.databases import Database, Databases, Pair, fill
from benchmarks.initialization import initialize, job
from benchmarks.link_run import CONNECT, LinkRun, run_link
from benchmarks.measurement import Measurement, Point, Start
from concord.jobs.link import Direction
from concord.messages.errors import ConcordError
from demo.progress import Progress

#: More rows than any table has.
NEVER = 10**12


class WrongResult(ConcordError):
    """A measured program did not do what it was measured for."""


@dataclass(frozen=True)
class Plan:
    """Tables of which sizes, how many changes in each, and how often."""

    tables: Sequence[tuple[int, Sequence[int]]]
    repeat: int

    def too_large(self) -> Iterator[str]:
        """The sizes that cannot be measured, since no row may be edited twice, each one line."""
        for rows, counts in self.tables:
            needed = (sum(counts) * self.repeat + WARM_UP) * len(Start)
            if needed > rows:
                yield f"a table of {rows:,} rows has not the {needed:,} different rows that the runs would edit"


@dataclass
class Results:
    """All points, and what a link costs that finds nothing to send."""

    points: list[Point] = field(default_factory=list)
    idle: Mapping[Start, list[Measurement]] = field(default_factory=lambda: {start: [] for start in Start})


@contextmanager
def started(start: Start, url: str) -> Iterator[None]:
    """Links get a Spark of their own, or that of the Connect server at `url`; those in threads ask for none."""
    os.environ.pop(CONNECT, None)
    if start is not Start.COLD:
        os.environ[CONNECT] = url
    try:
        yield
    finally:
        os.environ.pop(CONNECT, None)


def compare(databases: Databases, plan: Plan, directory: Path, progress: Progress) -> Results:
    """Measure every point of the plan. Raises WrongResult, or whatever made a link or psql fail."""
    results = Results()
    with server(directory) as url:
        for ordinal, (rows, counts) in enumerate(plan.tables):
            with progress.step(f"Make a table of {rows:,} rows in three databases"):
                fill(databases, rows)
            with progress.step("Provision London and Cape Town, and prove that they start equal"):
                initialize(databases)
                by_hand.prepare(databases)
            table = _Table(databases, rows, url, progress, results)
            if not ordinal:
                table.warm_up()
            table.measure(counts, plan.repeat)
    return results


@dataclass
class _Table:
    """The measurements in a table of one size. Sets of edits follow each other and share no row."""

    databases: Databases
    rows: int
    spark: str
    progress: Progress
    results: Results
    edited: int = 0

    def warm_up(self) -> None:
        self._repetition(Point(self.rows, WARM_UP), "Warm up", link_first=True)
        for measured in self.results.idle.values():
            measured.clear()

    def measure(self, counts: Sequence[int], repeat: int) -> None:
        for count in counts:
            point = Point(self.rows, count)
            for turn in range(repeat):
                title = f"{count:,} changes in {self.rows:,} rows, {turn + 1} of {repeat}"
                self._repetition(point, title, link_first=turn % 2 == 0)
            self.results.points.append(point)

    def _repetition(self, point: Point, title: str, *, link_first: bool) -> None:
        """Each kind of start has edits of its own, which the script by hand carries as well."""
        with self.progress.step(title) as step:
            # In turn from either end: the later ones find more pages in the cache.
            for start in Start if link_first else reversed(Start):
                edits = self._edit(point.changes)
                for program in ("link", "by hand") if link_first else ("by hand", "link"):
                    self.databases.everywhere("CHECKPOINT")
                    if program == "link":
                        point.link[start].append(carrying(self._run(start), edits))
                    else:
                        point.by_hand.append(by_hand.run_by_hand(self.databases))
                check(self.databases.all, edits)
                self.results.idle[start].append(self._run(start, Direction.REVERSE).measurement)
            told = [f"{start} {point.link[start][-1].wall:.1f} s" for start in Start]
            step.result = f"{', '.join(told)}, by hand {point.by_hand[-1].wall:.1f} s"

    def _run(self, start: Start, direction: Direction = Direction.FORWARD) -> LinkRun:
        with started(start, self.spark):
            made = job(self.databases, direction)
            return run_link(made.model_copy(update={"spark_from": NEVER}) if start is Start.THREADS else made)

    def _edit(self, count: int) -> Edits:
        edits = Edits(self.rows, count, self.edited)
        self.edited += count
        edit(self.databases, edits)
        return edits


def edit(pair: Pair, edits: Edits) -> None:
    """Tidy up everywhere, then edit London, and tidy up there as autovacuum would."""
    pair.everywhere("VACUUM (ANALYZE)")
    pair.london.run(*edits.statements, "VACUUM (ANALYZE)")


def check(databases: Sequence[Database], edits: Edits) -> None:
    """Raises WrongResult when the edited rows are not the same in all of them."""
    found = {each.name: each.row(edits.digest) for each in databases}
    if len(set(found.values())) != 1:
        raise WrongResult(f"the edited rows differ: {found}")


def check_whole(databases: Sequence[Database], what: str) -> int:
    """The rows of the table, the same in all of them. Raises WrongResult, which says after what, when they are
    not."""
    found = {each.name: each.row(CONTENT) for each in databases}
    if len(set(found.values())) != 1:
        raise WrongResult(f"{what}: the sites differ: {found}")
    return int(found[databases[0].name][0])


def carrying(run: LinkRun, edits: Edits) -> Measurement:
    """The time of a link that carried them. Raises WrongResult when it did not report each of them."""
    if run.report.total("applied") != edits.count:
        raise WrongResult(f"{edits.count} rows were edited, but the link reports {run.report.tables}")
    return run.measurement
