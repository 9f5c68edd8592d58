"""What the benchmark prints: the same tables for a person at the terminal and for docs/benchmarks.md."""

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
from benchmarks.measurement import Point, Spread

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
    yield _rates(points)
    yield _parts(points)
    yield from _growth(points)
    yield _idle(results)


def surroundings(database: Database, repeat: int) -> str:
    """Machine, versions, date: without them no number means anything."""
    (server,) = database.row("SELECT split_part(version(), ' ', 2)")
    memory = psutil.virtual_memory().total / 1024**3
    versions = f"PostgreSQL {server}, PySpark {pyspark.__version__}, Python {platform.python_version()}"
    when = pendulum.now("UTC").to_datetime_string()
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; {versions}; {when} UTC."
        f" Each number is the median of {repeat}, in brackets the range."
    )


def _processor() -> str:
    """What the system calls its processor; Linux says so in a file alone."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def _whole(points: Sequence[Point]) -> Grid:
    head = ("table", "changes", "link, s", "by hand, s", "ratio", "of it start-up, s", "memory, MiB")
    rows = [
        (
            *_place(point),
            _range(point.link_wall),
            _range(point.by_hand_wall),
            _ratio(point.link_wall, point.by_hand_wall),
            f"{point.start.median:.1f}",
            f"{point.link_memory.median / _MEBIBYTE:,.0f}",
        )
        for point in points
    ]
    return Grid("Whole processes, from start to end", head, rows)


def _rates(points: Sequence[Point]) -> Grid:
    head = (
        *("table", "changes", "acquire", "acquire + stage", "psql COPY", "ratio"),
        *("write", "INSERT + DELETE", "ratio", "all", "by hand", "ratio"),
    )
    rows = []
    for point in points:
        moved, copied = point.link_seconds("stage"), point.by_hand_seconds("copy")
        written, by_hand = point.link_seconds("write"), point.by_hand_seconds("write")
        both, both_by_hand = point.link_seconds("stage", "write"), point.by_hand_seconds("copy", "write")
        cells = (
            *(_rate(point, point.acquire), _rate(point, moved), _rate(point, copied), _ratio(moved, copied)),
            *(_rate(point, written), _rate(point, by_hand), _ratio(written, by_hand)),
            *(_rate(point, both), _rate(point, both_by_hand), _ratio(both, both_by_hand)),
        )
        rows.append((*_place(point), *cells))
    return Grid("Rows per second; the ratios are of seconds: link by hand-written", head, rows)


def _parts(points: Sequence[Point]) -> Grid:
    head = ("table", "changes", "stage, s", "write, s", *(f"{part}, s" for part in _WRITE_PARTS))
    rows = [
        (
            *_place(point),
            *(_range(point.link_seconds(part)) for part in ("stage", "write")),
            *(f"{point.link_seconds(part).median:.2f}" for part in _WRITE_PARTS),
        )
        for point in points
    ]
    return Grid("Where a link's seconds go: staging, then the write and its parts", head, rows)


def _growth(points: Sequence[Point]) -> Iterator[Grid]:
    """The same number of changes in tables of different sizes."""
    head = ("changes", "small table", "large table", "stage + write, s", "", "ratio")
    rows = []
    for large in points:
        for small in points:
            if small.changes == large.changes and small.table_rows < large.table_rows:
                seconds = [each.link_seconds("stage", "write") for each in (small, large)]
                sizes = (f"{each.table_rows:,}" for each in (small, large))
                cells = (*sizes, *(_range(each) for each in seconds), _ratio(seconds[1], seconds[0]))
                rows.append((f"{large.changes:,}", *cells))
    if rows:
        yield Grid("Time grows with the changes, not with the table", head, rows)


def _idle(results: Results) -> Grid:
    seconds = Spread.of([each.wall for each in results.idle])
    return Grid("A link with nothing to send", ("whole process, s",), [(_range(seconds),)])


def _place(point: Point) -> tuple[str, str]:
    return f"{point.table_rows:,}", f"{point.changes:,}"


def _rate(point: Point, seconds: Spread) -> str:
    return f"{point.changes / seconds.median:,.0f}"


def _ratio(one: Spread, other: Spread) -> str:
    return f"{one.median / other.median:.2f}"


def _range(spread: Spread) -> str:
    if spread.least == spread.most:
        return f"{spread.median:.2f}"
    return f"{spread.median:.2f} ({spread.least:.2f} to {spread.most:.2f})"
