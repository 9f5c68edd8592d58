"""The tables that the benchmark prints: the same for a person at the terminal and for docs/benchmarks.md."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pendulum
import psutil
import pyspark

from benchmarks.comparison import Results
from benchmarks.databases import Database
from benchmarks.measurement import Point, Spread, Start

_MEBIBYTE = 1024**2

#: The write's parts, as the link's log names them.
_WRITE_PARTS = ("lock", "judge", "base", "shadow", "constraints", "commit")


@dataclass(frozen=True)
class Grid:
    """A table of text: a title, a head, rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def grids(results: Results) -> Iterator[Grid]:
    """Every table of the report."""
    points = results.points
    yield _whole(points)
    for start in Start:
        yield _parts(points, start)
    yield from _growth(points)
    yield _idle(results)


def surroundings(database: Database, repeat: int) -> str:
    """Machine, versions, date: without them no number means anything."""
    often = (
        f"Each number is the median of {repeat}, in brackets the range." if repeat > 1 else "Measured once."
    )
    return f"{machine(database.version)} {often}"


def machine(server: str) -> str:
    """The machine, PostgreSQL's version and the others', now."""
    memory = psutil.virtual_memory().total / 1024**3
    versions = f"PostgreSQL {server}, PySpark {pyspark.__version__}, Python {platform.python_version()}"
    when = pendulum.now("UTC").to_datetime_string()
    return f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; {versions}; {when} UTC."


def _processor() -> str:
    """The system's name for its processor; Linux says so in a file alone."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _whole(points: Sequence[Point]) -> Grid:
    head = ("table", "changes", "by hand, s", *(f"{start}, s" for start in Start))
    speeds = tuple(f"{start}, speed" for start in Start)
    rows = [
        (
            *_place(point),
            spread(point.by_hand_wall),
            *(spread(point.link_wall(start)) for start in Start),
            *(ratio(point.by_hand_wall, point.link_wall(start)) for start in Start),
            mebibytes(point.link_memory.median),
        )
        for point in points
    ]
    title = "Whole processes, from start to end; speed: rows per second, by hand 1"
    return Grid(title, (*head, *speeds, "memory, MiB"), rows)


def _parts(points: Sequence[Point], start: Start) -> Grid:
    head = (
        *("table", "changes", "stage, s", "COPY by hand, s", "write, s", "by hand, s"),
        *(f"{part}, s" for part in _WRITE_PARTS),
    )
    rows = [
        (
            *_place(point),
            *(spread(point.link_seconds(start, "stage")), spread(point.by_hand_seconds("copy"))),
            *(spread(point.link_seconds(start, "write")), spread(point.by_hand_seconds("write"))),
            *(f"{point.link_seconds(start, part).median:.2f}" for part in _WRITE_PARTS),
        )
        for point in points
    ]
    return Grid(f"Where the seconds of a link go, {start}: staging, then the write and its parts", head, rows)


def _growth(points: Sequence[Point]) -> Iterator[Grid]:
    """The same number of changes in tables of different sizes."""
    head = ("changes", "small table", "large table", "stage + write, s", "", "ratio")
    rows = []
    for large in points:
        for small in points:
            if small.changes == large.changes and small.table_rows < large.table_rows:
                seconds = [each.link_seconds(Start.WARM, "stage", "write") for each in (small, large)]
                sizes = (f"{each.table_rows:,}" for each in (small, large))
                cells = (*sizes, *(spread(each) for each in seconds), ratio(seconds[1], seconds[0]))
                rows.append((f"{large.changes:,}", *cells))
    if rows:
        yield Grid("The same number of changes, scattered over tables of two sizes (warm)", head, rows)


def _idle(results: Results) -> Grid:
    seconds = [Spread.of([each.wall for each in results.idle[start]]) for start in Start]
    head = tuple(f"{start}, whole process, s" for start in Start)
    return Grid("A link with nothing to send", head, [tuple(map(spread, seconds))])


def _place(point: Point) -> tuple[str, str]:
    return f"{point.table_rows:,}", f"{point.changes:,}"


def mebibytes(size: float) -> str:
    """Of bytes."""
    return f"{size / _MEBIBYTE:,.0f}"


def ratio(one: Spread, other: Spread) -> str:
    """Of the medians."""
    return f"{one.median / other.median:.2f}"


def spread(found: Spread) -> str:
    """The median, and where there are several numbers their range."""
    if found.least == found.most:
        return f"{found.median:.2f}"
    return f"{found.median:.2f} ({found.least:.2f} to {found.most:.2f})"
