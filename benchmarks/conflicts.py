"""`python -m benchmarks.conflicts`: conflicts of each kind of policy beside as many changes that meet nothing."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import databases, initialization, report
from benchmarks.arguments import add_places, counts, positive
from benchmarks.bookings import TABLE
from benchmarks.comparison import WrongResult, check_whole, started
from benchmarks.connected_run import server
from benchmarks.databases import Databases
from benchmarks.link_run import LinkRun, run_link
from benchmarks.measurement import Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.jobs.link import Direction, LinkJob
from concord.rules.policy import Policy
from concord.tables.replication_set import ReplicatedTable
from demo import terminal
from demo.progress import Progress

PART = "conflicts"

#: All that the number of rows has a part in.
MOVING = ("stage", "write")

#: No resolver, one that chooses, one that merges, and a function; the last two rounds have both kinds in one run.
CHOOSING = ("latest_timestamp",)
MERGING = ("additive(miles)", "merge_columns")
CUSTOM = ("custom(benchmarks.conflicts:the_dearer_of_two)",)
EDIT = "UPDATE public.bookings SET miles = miles + 500, price = price + {}, remarks = 'changed, ' || md5(remarks)"


def the_dearer_of_two(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """The row with the higher price, its miles those of both: a new row for every second conflict."""
    source, target = (conflicts.column(name) for name in ("source", "target"))
    rows = []
    for ours, theirs in zip(source.to_pylist(), target.to_pylist(), strict=True):
        dearer = max(ours, theirs, key=lambda row: float(row["price"]))
        rows.append(dearer | {"miles": max(ours["miles"], theirs["miles"]) + 500})
    even = pc.equal(pc.bit_wise_and(source.field("id"), 1), 0)
    decisions = pc.if_else(even, "row", "source")
    return pa.RecordBatch.from_arrays([decisions, pa.array(rows, source.type)], ["decision", "row"])


@dataclass(frozen=True)
class Round:
    """One run of the forward link: so many edits of London's, and of Cape Town's on some of the same rows."""

    title: str
    resolvers: tuple[str, ...]
    conflicts: int
    unconflicted: int

    @property
    def rows(self) -> int:
        return self.conflicts + self.unconflicted


@dataclass(frozen=True)
class Measured:
    """One round and what its forward link took, each time."""

    round: Round
    runs: list[LinkRun] = field(default_factory=list)

    def seconds(self, *steps: str) -> list[float]:
        return [sum(run.report.seconds[step] for step in steps) for run in self.runs]


def rounds(changes: int) -> tuple[Round, ...]:
    """Every kind alone, then beside as many that meet nothing."""
    return (
        Round("no conflict", CHOOSING, 0, changes),
        Round("latest_timestamp", CHOOSING, changes, 0),
        Round("additive, merge_columns", MERGING, changes, 0),
        Round("a custom function", CUSTOM, changes, 0),
        Round("no conflict", CHOOSING, 0, 2 * changes),
        Round("half latest_timestamp", CHOOSING, changes, changes),
        Round("half additive, merge_columns", MERGING, changes, changes),
        Round("half a custom function", CUSTOM, changes, changes),
    )


def measure(made: Databases, counts: Sequence[int], repeat: int, progress: Progress) -> list[Measured]:
    """Every round, each time on rows of its own. Raises WrongResult when the sites differ or the counts do."""
    planned = [Measured(each) for changes in counts for each in rounds(changes)]
    warm_up = Measured(planned[0].round)
    order = [warm_up, *planned * repeat]
    rows = sum(each.round.rows for each in order)
    with progress.step(f"Make a table of {rows:,} rows"):
        databases.fill(made, rows)
        initialization.initialize(made)
    first = 1
    for number, each in enumerate(order, 1):
        with progress.step(f"{number} of {len(order)}: {each.round.rows:,} changes, {each.round.title}"):
            each.runs.append(_run(made, each.round, first))
        first += each.round.rows
    return planned


def _run(made: Databases, each: Round, first: int) -> LinkRun:
    table = TABLE.model_copy(update={"policy": Policy(resolvers=each.resolvers)})
    initialization.provision_pair(made, table)
    made.london.run(f"{EDIT.format('1.50')} WHERE {_keys(first, each.rows)}")
    made.capetown.run(f"{EDIT.format('2.50')} WHERE {_keys(first, each.conflicts)}")
    for site in (made.london, made.capetown):
        site.run("VACUUM (ANALYZE) public.bookings", "CHECKPOINT")
    run = run_link(_job(made, Direction.FORWARD, table))
    run_link(_job(made, Direction.REVERSE, table))
    _check(made, each, run)
    return run


def _keys(first: int, count: int) -> str:
    return f"id BETWEEN {first} AND {first + count - 1}"


def _job(made: Databases, direction: Direction, table: ReplicatedTable) -> LinkJob:
    return initialization.job(made, direction).model_copy(update={"tables": (table,)})


def _check(made: Databases, each: Round, run: LinkRun) -> None:
    if run.report.total("conflicts") != each.conflicts:
        raise WrongResult(f"{each.title}: {run.report.total('conflicts')} conflicts of {each.conflicts}")
    check_whole((made.london, made.capetown), each.title)


def grid(measured: Sequence[Measured]) -> Grid:
    """A line for each round; the ratio is to as many changes that meet nothing, of the same repetition."""
    head = ("policy", "changes", "of them conflicts", "new rows", "stage, s", "write, s", "ratio", "whole, s")
    plain = {each.round.rows: each.seconds(*MOVING) for each in measured if not each.round.conflicts}
    rows = []
    for each in measured:
        counted = (each.round.rows, each.round.conflicts, each.runs[0].report.total("merged"))
        pairs = zip(each.seconds(*MOVING), plain[each.round.rows], strict=True)
        whole = [run.measurement.wall for run in each.runs]
        spreads = (*(each.seconds(step) for step in MOVING), [one / other for one, other in pairs], whole)
        cells = (report.spread(Spread.of(numbers)) for numbers in spreads)
        rows.append([each.round.title, *(f"{n:,}" for n in counted), *cells])
    return Grid("Warm links by what the changes meet", head, rows)


def _measure(directory: Path, counts: Sequence[int], repeat: int, *, recorded: bool) -> int:
    with databases.in_workspace(directory) as servers:
        with server(directory) as url, started(Start.WARM, url):
            measured = measure(servers, counts, repeat, Progress(terminal.console()))
        text = "\n\n".join([report.surroundings(servers.capetown, repeat), markdown(grid(measured))])
    publish(PART, text, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when both sites are equal after every round."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.conflicts", description=__doc__)
    made.add_argument("--changes", type=counts, default=(10, 1_000, 10_000), help="conflicts of each kind")
    made.add_argument("--repeat", type=positive, default=3, help="runs of each")
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(
        lambda: _measure(directory, options.changes, options.repeat, recorded=options.record), directory
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
