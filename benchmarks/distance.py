"""`python -m benchmarks.distance`: both links of a run between sites that are as far apart as cities are."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, report
from benchmarks.arguments import add_places
from benchmarks.bookings import Edits
from benchmarks.comparison import WrongResult, check, started
from benchmarks.connected_run import server
from benchmarks.databases import Pair, ServerKind
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Spread, Start
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from benchmarks.way import Way, way
from concord.jobs.link import Direction, LinkJob
from demo import terminal
from demo.progress import Progress

PART = "distance"
ROWS = 200_000

#: A link that has ended leaves its sessions for the way to close.
CLOSING = 0.5


@dataclass
class Runs:
    """Runs of both links between two sites: seconds of each link, and what went over the way."""

    delay: float  #: s, each way
    changes: int
    seconds: dict[Direction, list[float]] = field(default_factory=lambda: {each: [] for each in Direction})
    logins: dict[Direction, int] = field(default_factory=dict)
    turns: dict[Direction, int] = field(default_factory=dict)


def between(pair: Pair, far: Way, direction: Direction) -> LinkJob:
    """A link whose London is here, as the driver is, and whose Cape Town is far away."""
    plain = job(pair, direction)
    if direction is Direction.FORWARD:
        return plain.model_copy(update={"target": far.to(plain.target)})
    return plain.model_copy(update={"source": far.to(plain.source)})


def run(pair: Pair, far: Way, edits: Edits | None, runs: Runs, url: str) -> None:
    """One run. Raises WrongResult where the edited rows then differ, or the reverse link carries any."""
    if edits is not None:
        pair.london.run(*edits.statements)
    for direction in Direction:
        far.forget()
        with started(Start.WARM, url):
            done = run_link(between(pair, far, direction))
        expected = runs.changes if direction is Direction.FORWARD else 0
        if done.report.total("applied") != expected:
            raise WrongResult(f"{expected} rows were changed, but the link reports {done.report.tables}")
        runs.seconds[direction].append(done.measurement.wall)
        runs.logins[direction], runs.turns[direction] = far.logins, far.turns
        time.sleep(CLOSING)
    if edits is not None:
        check(pair.all, edits)


def grid(every: Sequence[Runs]) -> Grid:
    """A line for each distance and number of changes."""
    head = (
        "round trip, ms",
        "changes",
        "there, s",
        "back, s",
        "both, s",
        "logins",
        "round trips, there",
        "back",
    )
    return Grid(
        "Warm links by the time that a round trip to the far site takes", head, list(map(_line, every))
    )


def _line(runs: Runs) -> tuple[str, ...]:
    there, back = (runs.seconds[each] for each in Direction)
    both = [sum(each) for each in zip(there, back, strict=True)]
    return (
        f"{2000 * runs.delay:.0f}",
        f"{runs.changes:,}",
        *(report.spread(Spread.of(each)) for each in (there, back, both)),
        " + ".join(str(runs.logins[each]) for each in Direction),
        *(str(runs.turns[each]) for each in Direction),
    )


@contextmanager
def _sites(directory: Path, progress: Progress) -> Iterator[tuple[Pair, str]]:
    with ExitStack() as stack:
        pair = stack.enter_context(databases.pair_in_workspace(directory, ServerKind()))
        with progress.step(f"Make a table of {ROWS:,} rows in two databases"):
            databases.fill_pair(pair, ROWS)
            initialize(pair)
        yield pair, stack.enter_context(server(directory))


def _measure(
    directory: Path, delays: Sequence[float], counts: Sequence[int], repeat: int, *, recorded: bool
) -> int:
    progress, every, edited = Progress(terminal.console()), list[Runs](), 0
    with _sites(directory, progress) as (pair, url):
        server = pair.capetown.server
        with progress.step("Warm up"), way(server.host, server.port) as near:
            run(pair, near, None, Runs(0.0, 0), url)
        for delay in delays:
            with way(server.host, server.port, delay) as far:
                for count in counts:
                    runs = Runs(delay, count)
                    with progress.step(f"{count:,} changes, a round trip of {2000 * delay:.0f} ms"):
                        for _ in range(repeat):
                            edits = Edits(ROWS, count, edited) if count else None
                            run(pair, far, edits, runs, url)
                            edited += count
                    every.append(runs)
        results = "\n\n".join([report.surroundings(pair.capetown, repeat), markdown(grid(every))])
    publish(PART, results, recorded=recorded)
    return 0


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every link carried what was changed."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.distance", description=__doc__)
    made.add_argument(
        "--round-trips", type=_milliseconds, default=(0.0, 0.01, 0.075), help="ms, as in 0,20,150"
    )
    made.add_argument("--changes", type=_counts, default=(0, 10, 1_000), help="as in 0,10,1000")
    made.add_argument("--repeat", type=int, default=5, help="runs of each")
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(
        lambda: _measure(
            directory, options.round_trips, options.changes, options.repeat, recorded=options.record
        ),
        directory,
    )


def _milliseconds(text: str) -> tuple[float, ...]:
    """Seconds one way."""
    return tuple(float(part) / 2000 for part in text.split(","))


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
