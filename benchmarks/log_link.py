"""`python -m benchmarks.log_link`: links of two sites whose log tells of changes, beside links of two with triggers."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Never

from benchmarks import databases, initialization, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import TABLE, Edits
from benchmarks.capture import LOGICAL
from benchmarks.comparison import NEVER, check_whole
from benchmarks.databases import SETTINGS, Pair, ServerKind
from benchmarks.measurement import Spread
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.databases.provisioning import provision
from concord.jobs.link import Direction, LinkJob
from concord.jobs.site import Capture
from concord.tables.replication_set import ReplicatedTable
from demo import terminal
from demo.progress import Progress
from spark_jobs.link import transmit

PART = "log-link"

#: A link reads what users have edited, the one back what the first has written.
DIRECTIONS = {Direction.FORWARD: "with the changes", Direction.REVERSE: "back, with none"}


@dataclass(frozen=True)
class Sites:
    """Two sites of one kind of capture."""

    capture: Capture
    pair: Pair

    @property
    def table(self) -> ReplicatedTable:
        logged = [each.name for each in self.pair.all] if self.capture is Capture.LOG else []
        return TABLE.told_by_log(logged)

    def begin(self) -> None:
        """Capture, and prove the sites equal."""
        installed = [initialization.installation(each, self.table) for each in self.pair.all]
        provision(
            [replace(each, log_reader=each.installer.user, reads_log=each.installer) for each in installed]
        )
        initialization.declare_equal(self.job(Direction.FORWARD))

    def job(self, direction: Direction) -> LinkJob:
        """Carried by the driver's threads: they have the least that both kinds do alike."""
        plain = initialization.job(self.pair, direction, (self.table,))
        source, target = (
            end.model_copy(update={"log_reader": each.credentials(each.server.superuser)})
            for end in (plain.source, plain.target)
            for each in self.pair.all
            if each.name == end.name
        )
        return plain.model_copy(update={"source": source, "target": target, "spark_from": NEVER})


@dataclass
class Measured:
    """The seconds of so many changes, by step, of each kind of capture in each direction."""

    changes: int
    runs: dict[tuple[Capture, Direction], list[dict[str, float]]] = field(
        default_factory=lambda: {(capture, way): [] for capture in Capture for way in Direction}
    )

    def seconds(self, capture: Capture, way: Direction) -> list[float]:
        return [sum(each.values()) for each in self.runs[capture, way]]

    def registering(self, way: Direction) -> list[float]:
        return [each.get("register", 0.0) for each in self.runs[Capture.LOG, way]]

    def ratio(self, way: Direction) -> Spread:
        """Of each two that stood beside each other: what else the machine does hits both."""
        both = zip(self.seconds(Capture.LOG, way), self.seconds(Capture.TRIGGERS, way), strict=True)
        return Spread.of([log / triggers for log, triggers in both])


@dataclass(frozen=True)
class Plan:
    """How many rows the table has, how many change, how often."""

    rows: int
    changes: Sequence[int]
    repeat: int

    @property
    def edited(self) -> int:
        """Different rows that all repetitions edit."""
        return self.repeat * sum(self.changes)


def measure(kinds: Sequence[Sites], plan: Plan, progress: Progress) -> list[Measured]:
    """Each number of changes, so often as the plan says; which kind comes first changes each time. Raises WrongResult
    where a site then lacks a row."""
    every, before = [Measured(each) for each in plan.changes], 0
    for turn in range(plan.repeat):
        for each in every:
            edits = Edits(plan.rows, each.changes, before)
            with progress.step(f"{turn + 1} of {plan.repeat}: {each.changes:,} changes") as step:
                for sites in kinds[:: -1 if turn % 2 else 1]:
                    _carry(sites, edits, each)
                step.result = f"{each.ratio(Direction.FORWARD).median:.2f}"
            before += each.changes
    return every


def _unwanted() -> Never:
    """No step of these links is Spark's."""
    raise AssertionError("the driver's threads carry all rows")


def _carry(sites: Sites, edits: Edits, measured: Measured) -> None:
    sites.pair.london.run(*edits.statements)
    sites.pair.everywhere("VACUUM (ANALYZE)", "CHECKPOINT")
    for way in Direction:
        report = transmit(sites.job(way), _unwanted)
        measured.runs[sites.capture, way].append(dict(report.seconds))
    check_whole(sites.pair.all, f"{edits.count:,} changes by {sites.capture}")


def lines(every: Sequence[Measured]) -> Iterator[Sequence[str]]:
    """One for each number of changes and direction."""
    for each in every:
        for way, title in DIRECTIONS.items():
            spreads = [each.seconds(capture, way) for capture in (Capture.TRIGGERS, Capture.LOG)]
            seconds = (*spreads, each.registering(way))
            cells = [report.spread(Spread.of(numbers)) for numbers in seconds]
            yield f"{each.changes:,}", title, *cells, report.spread(each.ratio(way))


def _grid(plan: Plan, every: Sequence[Measured]) -> Grid:
    head = ("changes", "link", "by triggers, s", "by the log, s", "of that register, s", "ratio")
    return Grid(
        f"Links of a table of {plan.rows:,} rows, without the start of a process", head, list(lines(every))
    )


def _measure(directory: Path, plan: Plan, *, recorded: bool) -> int:
    progress = Progress(terminal.console())
    kind = ServerKind(settings=SETTINGS | LOGICAL)
    with databases.pair_in_workspace(directory, kind) as pair:
        kinds = [Sites(Capture.TRIGGERS, pair), Sites(Capture.LOG, pair.another("by_log"))]
        with progress.step(f"Two pairs of sites with {plan.rows:,} rows"):
            databases.fill_pair(pair, plan.rows)
            databases.copy_pair(pair, kinds[1].pair)
            for each in kinds:
                each.begin()
        every = measure(kinds, plan, progress)
        results = "\n\n".join([report.surroundings(pair.capetown, plan.repeat), markdown(_grid(plan, every))])
    publish(PART, results, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when everything was carried."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.log_link", description=__doc__)
    made.add_argument("--table-rows", type=positive, default=1_000_000, help="rows of each table")
    made.add_argument("--changes", type=counts, default=(1_000, 20_000, 100_000), help="as in 10,1000,100000")
    made.add_argument("--repeat", type=positive, default=4, help="runs of each")
    add_places(made, PART)
    options = made.parse_args(arguments)
    plan = Plan(options.table_rows, options.changes, options.repeat)
    if plan.edited > plan.rows:
        sys.stderr.write(
            f"a table of {plan.rows:,} rows has not the {plan.edited:,} different rows that links carry\n"
        )
        return 2
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, plan, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
