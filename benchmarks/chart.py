"""Seconds by number of changes, both axes logarithmic, as SVG."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil, floor, log10

from benchmarks.measurement import Point, Start

_WIDTH, _HEIGHT = 760, 400  # half of the last number stands right of the axis
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 700, 20, 350

_Series = Callable[[Point], float]
_SERIES: dict[str, tuple[str, _Series]] = {
    "link, cold": ("#1f6feb", lambda point: point.link_wall(Start.COLD).median),
    "link, warm": ("#2da44e", lambda point: point.link_wall(Start.WARM).median),
    "by hand": ("#cf222e", lambda point: point.by_hand_wall.median),
}


class _Axis:
    """Whole powers of ten around some values, spread over a stretch of pixels."""

    def __init__(self, values: Sequence[float], begin: int, end: int) -> None:
        self.first, self.last = floor(log10(min(values))), ceil(log10(max(values)))
        self._begin, self._scale = begin, (end - begin) / max(1, self.last - self.first)

    def at(self, value: float) -> float:
        return round(self._begin + (log10(value) - self.first) * self._scale, 1)

    @property
    def powers(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def chart(points: Sequence[Point]) -> str:
    """The points of the largest table. Raises ValueError when there is none."""
    largest = max(point.table_rows for point in points)
    shown = sorted((point for point in points if point.table_rows == largest), key=lambda each: each.changes)
    across = _Axis([point.changes for point in shown], _LEFT, _RIGHT)
    values = [value(point) for _, value in _SERIES.values() for point in shown]
    up = _Axis(values, _BOTTOM, _TOP)
    body = [*_frame(across, up, largest), *_lines(shown, across, up)]
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    style = 'font-family="sans-serif" font-size="13"'
    background = f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>', background, *body, "</svg>\n"]
    )


def _frame(across: _Axis, up: _Axis, rows: int) -> Iterator[str]:
    for value in across.powers:
        x = across.at(value)
        yield f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{_BOTTOM}" stroke="#dddddd"/>'
        yield f'<text x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{value:,.0f}</text>'
    for value in up.powers:
        y = up.at(value)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_RIGHT}" y2="{y}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g} s</text>'
    middle = (_LEFT + _RIGHT) / 2
    title = f"changed rows, in a table of {rows:,}"
    yield f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">{title}</text>'


def _lines(points: Sequence[Point], across: _Axis, up: _Axis) -> Iterator[str]:
    for place, (name, (colour, value)) in enumerate(_SERIES.items()):
        spots = [(across.at(point.changes), up.at(value(point))) for point in points]
        path = " ".join(f"{x},{y}" for x, y in spots)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in spots)
        yield f'<text x="{_LEFT + 12}" y="{_TOP + 20 + 18 * place}" fill="{colour}">{name}</text>'
