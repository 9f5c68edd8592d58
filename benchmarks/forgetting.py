"""`python -m benchmarks.forgetting`: the versions of a table whose every row was edited once, forgotten at three sites
while users and links go on."""

import argparse
import random
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from benchmarks import bookings, databases, report
from benchmarks.arguments import add_places, positive
from benchmarks.bookings import CONTENT, TABLE
from benchmarks.comparison import WrongResult
from benchmarks.databases import Database
from benchmarks.initialization import declare_equal, installation, next_epoch
from benchmarks.record import markdown, publish
from benchmarks.report import Grid
from concord.databases.provisioning import provision
from concord.databases.registry import dialect_of_all
from concord.jobs.link import Direction, LinkJob, link_name
from concord.jobs.upkeep import CarryingSite, Cleanup
from demo import terminal
from demo.progress import Progress
from spark_jobs.link import transmit

PART = "forgetting"
SITES = ("london", "capetown", "oslo")
SHADOW = 'concord."public.bookings"'

#: Rows that one statement edits, before.
_AT_ONCE = 50_000
#: So many changes that no link asks for Spark.
_BY_THE_DRIVER = 10**9


@dataclass
class Users:
    """One edit after the other at each site, each of a row that this site's users alone edit."""

    milliseconds: list[float] = field(default_factory=list)

    @property
    def edits(self) -> int:
        return len(self.milliseconds)

    @property
    def slowest(self) -> float:
        return max(self.milliseconds, default=0.0)


@dataclass(frozen=True)
class Shown:
    """The end of the versions, and the price for those who worked meanwhile."""

    rows: int
    before: int  #: versions at each site
    forgotten: int
    seconds: float
    users: Users
    links: int  #: that ran meanwhile
    left: int  #: versions at each site after one more cleanup, when all rests
    conflicts: int


def three(london: Database) -> tuple[Database, ...]:
    """London, and two more databases beside it that do not exist so far."""
    return (london, *(replace(london, name=name) for name in SITES[1:]))


def begin(sites: Sequence[Database], rows: int) -> None:
    """The same rows everywhere, each edited once in London, the hub, and all carried to every site."""
    london, *others = sites
    london.run(*bookings.creation(rows))
    for each in others:
        databases.copy(london, each)
    provision([installation(each) for each in sites])
    for spoke in others:
        declare_equal(_job(london, spoke))
    for first in range(0, rows, _AT_ONCE):
        last = min(first + _AT_ONCE, rows)
        london.run(f"UPDATE public.bookings SET seat = seat + 1 WHERE id > {first} AND id <= {last}")
    settle(sites)


def settle(sites: Sequence[Database]) -> None:
    """Every link, until none carries a row. Raises WrongResult where they never come to rest."""
    for _ in range(6):
        if not sum(_carried(sites[0], spoke, way) for spoke in sites[1:] for way in Direction):
            return
    raise WrongResult("the sites never come to rest")


def _job(one: Database, other: Database, direction: Direction = Direction.FORWARD) -> LinkJob:
    ends = (one, other) if direction is Direction.FORWARD else (other, one)
    return LinkJob(
        synchronization=f"{one.name}_{other.name}",
        direction=direction,
        transmission=uuid.uuid4().hex,
        epoch=next_epoch(),
        source=ends[0].access,
        target=ends[1].access,
        tables=(TABLE,),
        spark_from=_BY_THE_DRIVER,
    )


def _carried(one: Database, other: Database, direction: Direction) -> int:
    return transmit(_job(one, other, direction), _no_spark).total("acquired")


def _no_spark() -> NoReturn:
    raise AssertionError("no link has so many changes")


def measure(sites: Sequence[Database]) -> Shown:
    """One cleanup while users and links go on; then all rest, and a second one takes what they wrote meanwhile."""
    rows, before = (sites[0].row(f"SELECT count(*) FROM {table}")[0] for table in ("public.bookings", SHADOW))
    with _at_work(sites, int(rows)) as (users, runs):
        began = time.monotonic()
        done = _clean(sites)
        seconds = time.monotonic() - began
    settle(sites)
    _clean(sites)
    if len({each.row(CONTENT) for each in sites}) > 1:
        raise WrongResult("the sites differ")
    counts = [
        each.row(f"SELECT (SELECT count(*) FROM {SHADOW}), count(*) FROM concord.conflict") for each in sites
    ]
    return Shown(
        rows=int(rows),
        before=int(before),
        forgotten=min(each.forgotten for each in done.tables),
        seconds=seconds,
        users=users,
        links=len(runs),
        left=max(int(left) for left, _ in counts),
        conflicts=sum(int(conflicts) for _, conflicts in counts),
    )


def _clean(sites: Sequence[Database]) -> Cleanup:
    hub, *spokes = sites
    out: dict[str, dict[str, str]] = {each.name: {} for each in sites}
    for spoke in spokes:
        name = _job(hub, spoke).synchronization
        out[hub.name][link_name(name, Direction.FORWARD)] = spoke.name
        out[spoke.name][link_name(name, Direction.REVERSE)] = hub.name
    carrying = [CarryingSite(each.access, {TABLE.name: out[each.name]}, (TABLE,)) for each in sites]
    clean = dialect_of_all(each.access for each in sites).upkeep.clean
    now = time.time_ns() // 1000
    return clean(carrying, dry_run=False, now_us=now, min_age_us=0, living_age_us=0)


@contextmanager
def _at_work(sites: Sequence[Database], rows: int) -> Iterator[tuple[Users, list[int]]]:
    """Users at every site, and all links one after the other, for as long as the block runs. Raises what they raise."""
    over, users, runs = threading.Event(), Users(), list[int]()

    def edit(place: int) -> None:
        chance = random.Random(place)
        with sites[place].connect() as connection:
            while not over.wait(0.02):
                key = chance.randrange(rows // len(SITES)) * len(SITES) + place + 1
                began = time.monotonic()
                connection.execute("UPDATE public.bookings SET miles = miles + 1 WHERE id = %s", (key,))
                users.milliseconds.append((time.monotonic() - began) * 1000)

    def carry() -> None:
        while not over.is_set():
            for spoke in sites[1:]:
                runs.extend(_carried(sites[0], spoke, way) for way in Direction)

    with ThreadPoolExecutor(len(sites) + 1) as pool:
        working = [pool.submit(carry), *(pool.submit(edit, place) for place in range(len(sites)))]
        try:
            yield users, runs
        finally:
            over.set()
        for each in working:
            each.result()


def grid(shown: Shown) -> Grid:
    """One line."""
    head = (
        *(
            "rows",
            "versions at each site",
            "forgotten while all work",
            "s",
            "edits meanwhile",
            "slowest edit, ms",
        ),
        *("links meanwhile", "versions left at rest", "conflicts"),
    )
    cells = (
        *(f"{shown.rows:,}", f"{shown.before:,}", f"{shown.forgotten:,}", f"{shown.seconds:.1f}"),
        *(f"{shown.users.edits:,}", f"{shown.users.slowest:.0f}", f"{shown.links:,}"),
        *(f"{shown.left:,}", f"{shown.conflicts:,}"),
    )
    return Grid("Versions of a table whose every row was edited once, at three sites", head, [cells])


def _run(directory: Path, rows: int, *, recorded: bool) -> int:
    progress = Progress(terminal.console())
    with databases.alone_in_workspace(directory) as london:
        sites = three(london)
        with progress.step(f"Edit {rows:,} rows once, and carry them to three sites"):
            begin(sites, rows)
        with progress.step("Forget their versions while users and links go on") as step:
            shown = measure(sites)
            step.result = f"{shown.seconds:.1f} s; {shown.left} left, {shown.conflicts} conflicts"
        text = "\n\n".join([report.surroundings(london, 1), markdown(grid(shown))])
    publish(PART, text, recorded=recorded)
    return 0 if not (shown.left or shown.conflicts) else 1


def main(arguments: list[str]) -> int:
    """Measure and print; 0 when every version was forgotten, and none was in conflict."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.forgetting", description=__doc__)
    made.add_argument("--rows", type=positive, default=1_000_000)
    add_places(made, PART)
    options = made.parse_args(arguments)
    directory = options.directory.absolute()
    return terminal.run(lambda: _run(directory, options.rows, recorded=options.record), directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
