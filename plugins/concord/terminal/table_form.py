"""How a table looks: columns where they fit, a paragraph a row where a terminal is too narrow, plain text in a pipe.

No identifier, number or name is ever cut or broken, whatever the width; prose is wrapped between words.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest

from rich.cells import cell_len

from concord.messages.inert import inert

Rows = Sequence[Sequence[str]]

_BETWEEN = 2  #: spaces from column to column
_PROSE = 24  #: columns of the terminal that a text of several words is given at least
_INDENT = "  "


class Kind(Enum):
    """The acts that are allowed on a column."""

    EXACT = "exact"
    PROSE = "prose"  #: wrapped between words
    COUNT = "count"  #: left out where it holds zeros alone


@dataclass(frozen=True, slots=True)
class Cells:
    """A table as text."""

    headings: Sequence[str]
    rows: Rows
    kinds: Sequence[Kind]

    def columns(self) -> Iterator[tuple[str, Sequence[str], Kind]]:
        return zip(self.headings, zip(*self.rows, strict=True), self.kinds, strict=True)


def written(headings: Sequence[str], rows: Rows, kinds: Sequence[Kind]) -> str:
    """A table that has rows, with a blank line after it."""
    table = Cells([*map(inert, headings)], [[inert(cell) for cell in row] for row in rows], kinds)
    if not sys.stdout.isatty():
        return plain(table) + "\n"
    return drawn(table, shutil.get_terminal_size().columns) + "\n"


def plain(table: Cells) -> str:
    """Lines of cells padded with spaces, each as wide as its longest: for `grep`, `less` and files."""
    lines = [table.headings, *table.rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    return "".join(f"{_line(line, widths, [False] * len(widths))}\n" for line in lines)


def drawn(table: Cells, width: int) -> str:
    """The same for a terminal that is so many columns wide."""
    if sum(_narrowest(table)) <= width:
        return _in_columns(table, width)
    narrow, zeros = _without_empty(table)
    text = _in_columns(narrow, width) if sum(_narrowest(narrow)) <= width else _flowing(narrow, width)
    if not zeros:
        return text
    lines = _wrapped(f"0 in every row: {', '.join(zeros)}", width - len(_INDENT))
    return text + "".join(f"{_INDENT}{line}\n" for line in lines)


def _narrowest(table: Cells) -> list[int]:
    """How wide the columns are at least, each with the space before it."""
    return [_least([heading, *cells], kind) + _BETWEEN for heading, cells, kind in table.columns()]


def _least(cells: Sequence[str], kind: Kind) -> int:
    widest = max(map(cell_len, cells))
    if kind is not Kind.PROSE:
        return widest
    return max(min(_PROSE, widest), *(cell_len(word) for cell in cells for word in cell.split() or [""]))


def _without_empty(table: Cells) -> tuple[Cells, list[str]]:
    """The table without columns that hold nothing; and the headings of counts that hold zeros alone."""
    columns = list(table.columns())
    zeros = [heading for heading, cells, kind in columns if kind is Kind.COUNT and set(cells) == {"0"}]
    kept = [at for at, (heading, cells, _) in enumerate(columns) if heading not in zeros and any(cells)]
    rows = [[row[at] for at in kept] for row in table.rows]
    return Cells([table.headings[at] for at in kept], rows, [table.kinds[at] for at in kept]), zeros


def _in_columns(table: Cells, width: int) -> str:
    """Headings, a rule, and the rows; prose is wrapped into what the others leave."""
    least = _narrowest(table)
    widths, spare = [], width - sum(least)
    for (heading, cells, _), narrow in zip(table.columns(), least, strict=True):
        wide = min(narrow + spare, max(map(cell_len, [heading, *cells])) + _BETWEEN)
        widths.append(wide - _BETWEEN)
        spare -= wide - narrow
    numbers = [all(cell.isdecimal() or not cell for cell in cells) for _, cells, _ in table.columns()]
    lines: list[Sequence[str]] = [table.headings, ["-" * each for each in widths]]
    for row in table.rows:
        wrapped = [_wrapped(cell, each) for cell, each in zip(row, widths, strict=True)]
        lines += zip_longest(*wrapped, fillvalue="")
    return "".join(f"{_line(line, widths, numbers)}\n" for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> str:
    padded = map(_padded, cells, widths, numbers)
    return f"{_INDENT}{(' ' * _BETWEEN).join(padded)}".rstrip()


def _padded(cell: str, width: int, right: bool) -> str:
    padding = " " * (width - cell_len(cell))
    return f"{padding}{cell}" if right else f"{cell}{padding}"


def _flowing(table: Cells, width: int) -> str:
    """A paragraph for each row: `heading: cell`, one behind the other, and none broken but prose."""
    paragraphs = (_paragraph(table, row, width - 2 * len(_INDENT)) for row in table.rows)
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in paragraphs)


def _paragraph(table: Cells, row: Sequence[str], width: int) -> Iterator[str]:
    """The lines of a row; the first one stands out."""
    lines: list[str] = []
    for heading, cell, kind in zip(table.headings, row, table.kinds, strict=True):
        if not cell or (kind is Kind.COUNT and cell == "0"):
            continue
        pair = f"{heading}: {cell}"
        if lines and cell_len(lines[-1]) + _BETWEEN + cell_len(pair) <= width:
            lines[-1] += " " * _BETWEEN + pair
        else:
            lines += _wrapped(pair, width) if kind is Kind.PROSE else [pair]
    for number, line in enumerate(lines):
        yield f"{_INDENT}{_INDENT if number else ''}{line}"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words; a text that fits stays as it is."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(lines[-1]) + 1 + cell_len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
