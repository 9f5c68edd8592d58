"""Write results into docs/benchmarks.md, between their markers, and the chart beside it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.measurement import Point
from benchmarks.report import Grid
from demo.environment import PROJECT

PAGE = PROJECT / "docs" / "benchmarks.md"
CHART = "benchmarks.svg"


def markers(part: str) -> tuple[str, str]:
    """Between which two lines of the page the results of one benchmark stand."""
    return f"<!-- {part}: begin -->", f"<!-- {part}: end -->"


BEGIN, END = markers("results")


def record(page: Path, surroundings: str, grids: Sequence[Grid], points: Sequence[Point]) -> None:
    """Replace the results of a link, and draw them. Raises ValueError when the page has lost its markers."""
    put(
        page, "results", "\n\n".join([surroundings, f"![Seconds by changes]({CHART})", *map(markdown, grids)])
    )
    page.with_name(CHART).write_text(chart(points))


def put(page: Path, part: str, results: str) -> None:
    """Replace what stands between the markers of a part. Raises ValueError when the page has lost them."""
    (one, other), text = markers(part), page.read_text()
    before, begin, rest = text.partition(one)
    _, end, after = rest.partition(other)
    if not begin or not end:
        raise ValueError(f"{page} needs the lines {one} and {other}, between which the results go")
    page.write_text(f"{before}{one}\n\n{results}\n\n{other}{after}")


def publish(part: str, results: str, *, recorded: bool) -> None:
    """Print the results of one benchmark, and `put` them into the page where they are to be recorded."""
    sys.stdout.write(f"\n{results}\n")
    if recorded:
        put(PAGE, part, results)
        sys.stdout.write(f"Recorded in {PAGE.relative_to(PROJECT)}.\n")


def markdown(grid: Grid) -> str:
    """A heading and a table, as the page shows them: numbers to the right."""
    columns = list(zip(*grid.rows, strict=True))
    sides = ["---:" if all(cell[:1].isdigit() for cell in column) else "---" for column in columns]
    lines = [grid.head, sides, *grid.rows]
    return "\n".join([f"### {grid.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])
