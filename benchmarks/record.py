"""Write the results into docs/benchmarks.md, between its markers, and the chart beside it."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.measurement import Point
from benchmarks.report import Grid

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
CHART = "benchmarks.svg"


def record(page: Path, surroundings: str, grids: Sequence[Grid], points: Sequence[Point]) -> None:
    """Replace what stands between the markers. Raises ValueError when the page has lost them."""
    text = page.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} needs the lines {BEGIN} and {END}, between which the results go")
    results = "\n\n".join([surroundings, f"![Seconds by changes]({CHART})", *map(_markdown, grids)])
    page.write_text(f"{before}{BEGIN}\n\n{results}\n\n{END}{after}")
    page.with_name(CHART).write_text(chart(points))


def _markdown(grid: Grid) -> str:
    lines = [grid.head, ["---:" for _ in grid.head], *grid.rows]
    return "\n".join([f"### {grid.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])
