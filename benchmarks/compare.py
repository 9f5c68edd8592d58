"""`python -m benchmarks.compare`: find a few damaged rows of many while users write, beside a plain md5 scan."""

import argparse
import platform
import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks import databases
from benchmarks.bookings import creation
from benchmarks.databases import Database, Databases
from benchmarks.initialization import initialize, job
from benchmarks.link_run import run_application, run_link
from benchmarks.measurement import Measurement
from concord.comparison import CompareJob, CompareReport, Repair
from concord.databases.postgresql import triggers
from concord.errors import ConcordError
from concord.link import Direction
from demo import workspace

#: What is done to the damaged rows, in turn; each statement takes the key.
DAMAGES = (
    ("content", "capetown", "UPDATE bookings SET remarks = 'damaged' WHERE id = %s"),
    ("only_source", "capetown", "DELETE FROM bookings WHERE id = %s"),
    ("only_target", "london", "DELETE FROM bookings WHERE id = %s"),
    ("content", "london", "UPDATE bookings SET price = price + 0.01 WHERE id = %s"),
)
_MIB = 2**20


class WrongResult(ConcordError):
    """The comparison did not find exactly what was damaged."""


@dataclass(frozen=True)
class Figures:
    """Seconds and bytes of one comparison, and of what it stands beside."""

    md5: dict[str, float]
    compared: Measurement
    report: CompareReport
    repaired: Measurement
    written: int  #: changes that users made while it compared


def main(arguments: list[str]) -> int:
    """0 when exactly the damaged rows were found, and none was left after the repair."""
    options = _options(arguments)
    directory = options.directory.absolute()
    with databases.in_workspace(directory) as made:
        figures = _measure(made, options.rows, options.differences, options.rate)
    for line in _lines(options.rows, options.differences, options.rate, figures):
        print(line)
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    made.add_argument("--rows", type=int, default=5_000_000)
    made.add_argument("--differences", type=int, default=7, help="rows that are damaged")
    made.add_argument("--rate", type=float, default=200.0, help="changes per second, both sites together")
    made.add_argument(
        "--directory", type=Path, default=workspace.DEFAULT / "benchmark-compare", help="for the servers"
    )
    return made.parse_args(arguments)


def _measure(made: Databases, rows: int, differences: int, rate: float) -> Figures:
    """Raises WrongResult when a planted difference is missed, another one found, or one left by the repair."""
    sites = (made.london, made.capetown)
    _say(f"Make a table of {rows:,} rows at two sites, provision, and prove them equal")
    for each in sites:
        each.server.create_database(each.name)
        each.run(*creation(rows))
    initialize(made)
    planted = _damage(made, rows, differences)
    md5 = {each.name: _md5(each) for each in sites}
    _say(f"Compare while users make {rate:g} changes a second")
    with _users(sites, rows, rate, spared=set(planted)) as written:
        time.sleep(5)
        before = sum(written)
        report, compared = _run(made, Repair.NONE)
        during = sum(written) - before
    found = {int(each.key[0]): each.kind.value for each in report.differences}
    if found != planted or report.found != len(planted):
        raise WrongResult(f"damaged were {planted}, found were {found}")
    _say("Repair, let the links run, and compare again")
    _, repaired = _run(made, Repair.APPLY)
    for direction in (Direction.FORWARD, Direction.REVERSE) * 2:
        run_link(job(made, direction))
    left, _ = _run(made, Repair.NONE)
    if left.found or left.tables[0].in_flight:
        raise WrongResult(f"after the repair {left.found} keys differ")
    return Figures(md5, compared, report, repaired, during)


def _run(made: Databases, repair: Repair) -> tuple[CompareReport, Measurement]:
    return run_application("compare", CompareJob(link=job(made), repair=repair), CompareReport)


def _damage(made: Databases, rows: int, differences: int) -> dict[int, str]:
    """Behind the back of capture, as broken storage or a careless superuser would."""
    keys = random.Random(rows).sample(range(1, rows + 1), differences)
    planted = {}
    sites = {each.name: each for each in (made.london, made.capetown)}
    for each in sites.values():
        each.run("ALTER TABLE bookings DISABLE TRIGGER USER")
    for turn, key in enumerate(keys):
        kind, site, statement = DAMAGES[turn % len(DAMAGES)]
        sites[site].run(statement.replace("%s", str(key)))
        planted[key] = kind
    for each in sites.values():
        each.run(triggers.enabling("public.bookings"))
    return planted


def _md5(database: Database) -> float:
    began = time.monotonic()
    database.row("SELECT count(md5(b::text)) FROM public.bookings b")
    return time.monotonic() - began


@contextmanager
def _users(sites: tuple[Database, Database], rows: int, rate: float, spared: set[int]) -> Iterator[list[int]]:
    """One user at each site, scattered over the table; the list counts what each has changed."""
    over, counted = threading.Event(), [0, 0]

    def write(which: int) -> None:
        chosen, began = random.Random(which), time.monotonic()
        with sites[which].connect() as connection:
            while not over.is_set():
                _change(connection, chosen.randint(1, rows), spared)
                counted[which] += 1
                due = began + counted[which] / (rate / 2)
                over.wait(max(0.0, due - time.monotonic()))

    threads = [threading.Thread(target=write, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield counted
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _change(connection: psycopg.Connection[object], key: int, spared: set[int]) -> None:
    if key not in spared:
        connection.execute("UPDATE public.bookings SET miles = miles + 1 WHERE id = %s", [key])


def _lines(rows: int, differences: int, rate: float, figures: Figures) -> Iterator[str]:
    (table,) = figures.report.tables
    apart = sum(figures.md5.values())
    memory = platform.machine()
    yield f"{rows:,} rows at each site, {differences} damaged, {rate:g} changes a second ({memory}, local[2])"
    yield ""
    yield "| what | seconds | memory, MiB |"
    yield "| --- | ---: | ---: |"
    for site, seconds in figures.md5.items():
        yield f"| `SELECT count(md5(b::text))` at {site} | {seconds:.1f} | |"
    yield f"| both scans | {apart:.1f} | |"
    for name, measured in (("compare", figures.compared), ("compare and repair", figures.repaired)):
        yield f"| {name}, whole process | {measured.wall:.1f} | {measured.memory // _MIB:,} |"
        for step in ("scan", "judge", "repair"):
            if step in measured.parts:
                yield f"| … of it {step} | {measured.seconds(step):.1f} | |"
    yield ""
    yield (
        f"Found: {figures.report.found} differences, exactly the damaged ones; {table.in_flight:,} keys in flight;"
        f" {figures.written:,} changes were made meanwhile. Compare took {figures.compared.wall / apart:.2f} times"
        " both scans. After the repair and two runs of both links: 0 differences, 0 in flight."
    )


def _say(sentence: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {sentence} …", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
