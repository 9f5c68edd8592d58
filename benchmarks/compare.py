"""`python -m benchmarks.compare`: find a few damaged rows of many while users write, beside md5 scans of both sites."""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import databases, report
from benchmarks.alone import run_alone
from benchmarks.arguments import add_places, positive
from benchmarks.bookings import creation
from benchmarks.damage import damage, users
from benchmarks.databases import Database, Databases
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_link
from benchmarks.measurement import Measurement, Spread
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.jobs.comparison import CompareJob, CompareReport, Repair
from concord.jobs.link import Direction
from concord.messages.errors import ConcordError
from demo import terminal
from demo.progress import Progress

#: The names of the results in docs/benchmarks.md.
PART = "compare"
#: By as many processes as a comparison has sessions at each site, so that neither has more of a busy machine.
MD5 = "SET max_parallel_workers_per_gather = 1; SELECT count(md5(b::text)) FROM public.bookings b"
_MIB = 2**20


class WrongResult(ConcordError):
    """The comparison did not find exactly what was damaged."""


@dataclass
class Measured:
    """Seconds and bytes of the comparisons of one size, and of what they stand beside."""

    rows: int
    md5: list[float] = field(default_factory=list)
    compared: list[Measurement] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    repaired: Measurement | None = None


def measure(made: Databases, options: argparse.Namespace, rows: int, progress: Progress) -> Measured:
    """Raises WrongResult when a planted difference is missed, another one found, or one left by the repair."""
    measured, sites = Measured(rows), (made.london, made.capetown)
    with progress.step(f"{rows:,} rows at two sites, proven equal, then {options.differences} damaged"):
        for each in sites:
            each.server.drop_database(each.name)
            each.server.create_database(each.name)
            each.run(*creation(rows))
        initialize(made)
        planted = damage(made, rows, options.differences)
    with users(made, rows, options.rate, spared=set(planted)):
        for turn in range(options.repeat):
            with progress.step(f"{turn + 1} of {options.repeat}: both md5 scans, then compare"):
                measured.md5.append(_md5(sites))
                found, took = _run(made, Repair.NONE)
            _check(found, planted)
            measured.compared.append(took)
            measured.in_flight.append(found.tables[0].in_flight)
    with progress.step("repair, run both links twice, compare again"):
        _, measured.repaired = _run(made, Repair.APPLY)
        for direction in (Direction.FORWARD, Direction.REVERSE) * 2:
            run_link(job(made, direction))
        left, _ = _run(made, Repair.NONE)
    if left.found or left.tables[0].in_flight:
        raise WrongResult(f"after the repair {left.found} keys differ")
    return measured


def _run(made: Databases, repair: Repair) -> tuple[CompareReport, Measurement]:
    return run_alone(CompareJob(link=job(made), repair=repair))


def _check(found: CompareReport, planted: dict[int, str]) -> None:
    kinds = {int(each.key[0]): each.kind.value for each in found.differences}
    if kinds != planted or found.found != len(planted):
        raise WrongResult(f"damaged were {planted}, found were {kinds}")


def _md5(sites: Sequence[Database]) -> float:
    """Both sites at the same time."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(sites)) as threads:
        list(threads.map(lambda each: each.run(MD5), sites))
    return time.monotonic() - began


def grid(measured: Sequence[Measured]) -> Grid:
    """A line for each size; a ratio is of one repetition's comparison to its md5 scans."""
    head = (
        "rows at each site",
        "both md5 scans, s",
        "compare, s",
        "ratio",
        "with the start of its process, s",
        "ratio",
        "keys in flight",
        "memory, MiB",
        "compare and repair, s",
    )
    return Grid("Comparing two sites", head, [_line(each) for each in measured])


def _line(each: Measured) -> list[str]:
    walls = [run.wall for run in each.compared]
    itself = [sum(run.parts.values()) for run in each.compared]
    numbers = (each.md5, itself, _ratios(itself, each.md5), walls, _ratios(walls, each.md5))
    assert each.repaired is not None, "it was measured"
    return [
        f"{each.rows:,}",
        *(report.spread(Spread.of(some)) for some in numbers),
        f"{max(each.in_flight):,}",
        f"{max(run.memory for run in each.compared) // _MIB:,}",
        f"{each.repaired.wall:.1f}",
    ]


def _ratios(seconds: Sequence[float], md5: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(seconds, md5, strict=True)]


def _measure(directory: Path, options: argparse.Namespace) -> int:
    progress = Progress(terminal.console())
    with databases.in_workspace(directory) as made:
        measured = [measure(made, options, rows, progress) for rows in options.rows]
        text = "\n\n".join([report.surroundings(made.capetown, options.repeat), markdown(grid(measured))])
    publish(PART, text, recorded=options.record)
    return 0


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(positive(part) for part in text.split(","))


def main(arguments: list[str]) -> int:
    """0 when exactly the damaged rows were found every time, and none was left after the repair."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    made.add_argument("--rows", type=_sizes, default=(1_000, 1_000_000, 5_000_000), help="at each site")
    made.add_argument("--differences", type=positive, default=7, help="rows that are damaged")
    made.add_argument("--rate", type=float, default=200.0, help="changes per second, both sites together")
    made.add_argument("--repeat", type=positive, default=3, help="comparisons of each size")
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _measure(directory, options), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
