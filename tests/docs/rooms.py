"""`python -m tests.docs.rooms`: the rooms of the code and their arrows, drawn from its imports into docs/.

A room is a package. An arrow is an import from one room's files to another's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path

import grimp

from tests.conftest import PROJECT

POSTGRESQL = "concord.databases.postgresql"
#: Packages whose own packages are rooms. PostgreSQL's stand in a picture of their own.
_WINGS = ("concord", "concord.databases", "concord.orchestration")
#: Modules at the top of `concord` that other programs enter by: each stands for itself.
_ENTRANCES = ("concord.dags", "concord.entries", "concord.__main__")

_WIDE, _HIGH, _GAP, _FLOOR, _MARGIN = 184, 30, 16, 74, 20


@dataclass(frozen=True)
class House:
    """Rooms, and which rooms each imports."""

    title: str
    arrows: Mapping[str, frozenset[str]]

    @cached_property
    def floors(self) -> Mapping[str, int]:
        """1 for a room that imports no other. Raises ValueError where rooms import each other in a circle."""
        found: dict[str, int] = {}
        while len(found) < len(self.arrows):
            ready = {
                room for room, below in self.arrows.items() if room not in found and below <= found.keys()
            }
            if not ready:
                raise ValueError(f"rooms import each other: {sorted(self.arrows.keys() - found.keys())}")
            found |= {room: 1 + max((found[each] for each in self.arrows[room]), default=0) for room in ready}
        return found

    @cached_property
    def drawn(self) -> list[tuple[str, str]]:
        """The arrows that no others imply."""
        return [
            (room, below)
            for room, all_below in self.arrows.items()
            for below in sorted(all_below)
            if not any(below in self._reached(other) for other in all_below - {below})
        ]

    def _reached(self, room: str) -> frozenset[str]:
        below = self.arrows[room]
        return below.union(*(self._reached(each) for each in below))


@dataclass
class _Arrows:
    made: dict[str, set[str]] = field(default_factory=dict)

    def add(self, room: str, below: str | None = None) -> None:
        self.made.setdefault(room, set())
        if below not in (None, room):
            self.made.setdefault(str(below), set())
            self.made[room].add(str(below))

    def house(self, title: str) -> House:
        return House(title, {room: frozenset(below) for room, below in sorted(self.made.items())})


def whole() -> House:
    """Every room of the product; PostgreSQL's are one."""
    return _built("concord", room_of)


def postgresql() -> House:
    """The rooms of PostgreSQL."""
    return _built("PostgreSQL", room_of_postgresql)


def _built(title: str, place: object) -> House:
    assert callable(place)
    graph = grimp.build_graph("concord", "spark_jobs", cache_dir=None)
    arrows = _Arrows()
    for module in graph.modules:
        if (room := place(module)) is None:
            continue
        arrows.add(room)
        for other in graph.find_modules_directly_imported_by(module):
            if below := place(other):
                arrows.add(room, below)
    return arrows.house(title)


def room_of(module: str) -> str | None:
    """The room of a module; None for a package that is no room itself."""
    if module in _ENTRANCES:
        return module
    if module in _WINGS and module != "concord.databases":
        return None
    parts = module.split(".")
    deep = 3 if parts[:2] in (["concord", "databases"], ["concord", "orchestration"]) else 2
    if parts[0] == "spark_jobs":
        return "spark_jobs"
    if parts[:2] == ["concord", "databases"] and parts[2:3] not in (["contract"], ["postgresql"]):
        return "concord.databases"
    return ".".join(parts[:deep])


def room_of_postgresql(module: str) -> str | None:
    """The same within PostgreSQL's own package."""
    parts = module.split(".")
    inside = module.startswith(f"{POSTGRESQL}.") and len(parts) > 3
    return ".".join(parts[:4]) if inside else None


def svg(house: House) -> str:
    """The picture: floors from the ground up, boxes of one size, lines downwards."""
    places = dict(_places(house))
    wide = max(x for x, _ in places.values()) + _WIDE + _MARGIN
    high = max(y for _, y in places.values()) + _HIGH + _MARGIN
    lines = [_line(places[room], places[below]) for room, below in house.drawn]
    boxes = [_box(room, *place) for room, place in places.items()]
    style = "font: 13px sans-serif; text-anchor: middle"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
            f' style="{style}; background: white">',
            f"<title>Rooms of {house.title}: an arrow runs from a room to one that it imports</title>",
            '<defs><marker id="tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
            '<path d="M0,0 L6,3 L0,6 z" fill="#8c959f"/></marker></defs>',
            *lines,
            *boxes,
            "</svg>",
            "",
        ]
    )


def _places(house: House) -> Iterator[tuple[str, tuple[int, int]]]:
    top = max(house.floors.values())
    rows = [[room for room in house.arrows if house.floors[room] == floor] for floor in range(1, top + 1)]
    widest = max(map(len, rows))
    for floor, row in enumerate(rows, 1):
        left = _MARGIN + (widest - len(row)) * (_WIDE + _GAP) // 2
        for number, room in enumerate(row):
            yield room, (left + number * (_WIDE + _GAP), _MARGIN + (top - floor) * _FLOOR)


def _line(room: tuple[int, int], below: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = room, below
    half = _WIDE // 2
    drawn = f"M{x1 + half},{y1 + _HIGH} L{x2 + half},{y2}"
    return f'<path d="{drawn}" stroke="#8c959f" fill="none" marker-end="url(#tip)"/>'


def _box(room: str, x: int, y: int) -> str:
    name = escape(room.removeprefix("concord.databases.postgresql.").removeprefix("concord."))
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4" fill="#ddf4ff" stroke="#0969da"/>'
        f'<text x="{x + _WIDE // 2}" y="{y + 20}">{name}</text>'
    )


def table(house: House) -> str:
    """Each room's own words about itself, from the top floor down."""
    rows = sorted(house.arrows, key=lambda room: (-house.floors[room], room))
    lines = [f"| `{room}` | {house.floors[room]} | {_said(room)} |" for room in rows]
    return "\n".join(["| room | floor | what lives there |", "| --- | ---: | --- |", *lines])


def _said(room: str) -> str:
    source = Path(import_module(room).__file__ or "").read_text()
    return " ".join((ast.get_docstring(ast.parse(source)) or "").split())


def page() -> str:
    """docs/rooms.md."""
    sections = [
        "# Rooms\n",
        "`python -m tests.docs.rooms` writes this page from the imports of the code. An arrow runs from a room to one"
        " that it imports. An arrow that follows from others is not drawn. `make check` refuses an arrow upwards.\n",
        "![Rooms and their arrows](rooms.svg)\n",
        table(whole()) + "\n",
        "## PostgreSQL\n",
        "![Rooms of PostgreSQL and their arrows](rooms-of-postgresql.svg)\n",
        table(postgresql()) + "\n",
    ]
    return "\n".join(sections)


def written() -> Mapping[str, str]:
    """Every file in docs/ that this makes, and its text."""
    return {"rooms.md": page(), "rooms.svg": svg(whole()), "rooms-of-postgresql.svg": svg(postgresql())}


if __name__ == "__main__":
    for name, text in written().items():
        (PROJECT / "docs" / name).write_text(text)
