"""A command's words: tables and sentences for people, or with `--json` one document of snake_case names.

A document holds, in this order: `command`, what the command shows, then `said`, `notices` and `problems`. A table
that a person sees only where it has rows is an empty list there, so that each command's document has one shape.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TextIO

import pendulum

from concord.messages.inert import inert, inert_lines
from concord.terminal import table_form
from concord.terminal.table_form import Kind
from concord.terminal.words import spoken


def write(text: str = "") -> None:
    """Write to stdout, and flush it. Where its reader has gone (`| head`), the rest is lost and the command goes on."""
    _write(sys.stdout, text)


def write_error(text: str = "") -> None:
    """The same of stderr."""
    _write(sys.stderr, text)


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Told:
    """The use of stdout for the whole process: a document that is being made, or None for people."""

    document: dict[str, Any] | None = None


_LISTS = ("said", "notices", "problems")


@dataclass(frozen=True, slots=True)
class Ago:
    """A moment as people read it in passing: `3 minutes ago`, or `never`."""

    moment: datetime | None

    def __str__(self) -> str:
        return "never" if self.moment is None else pendulum.instance(self.moment).diff_for_humans()


@contextmanager
def document(command: str) -> Iterator[None]:
    """The words of the block become one JSON document, printed at its end; nothing is where it raises."""
    made: dict[str, Any] = {"command": command, **{name: [] for name in _LISTS}}
    _Told.document = made
    try:
        yield
    finally:
        _Told.document = None
    last = {name: made.pop(name) for name in _LISTS}
    write(json.dumps(made | last, indent=2) + "\n")


def is_document() -> bool:
    """Is what is told meant for a program?"""
    return _Told.document is not None


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns in a document; with spaces they are the headings, unless there are others.

    `prose` may be wrapped between words, everything else never. Columns of `counts` may be left out where a
    terminal is narrow and they hold zeros alone.
    """

    names: Sequence[str]
    headings: Mapping[str, str] = field(default_factory=dict)
    prose: Sequence[str] = ()
    counts: Sequence[str] = ()

    @property
    def read(self) -> list[str]:
        """The headings."""
        return [self.headings.get(name, name.replace("_", " ")) for name in self.names]

    @property
    def kinds(self) -> list[Kind]:
        return [
            Kind.PROSE if name in self.prose else Kind.COUNT if name in self.counts else Kind.EXACT
            for name in self.names
        ]


def show(
    key: str,
    title: str,
    columns: Columns | Sequence[str],
    rows: Iterable[Iterable[object]],
    *,
    if_any: bool = False,
) -> None:
    """Rows under a title; in a document, objects under `key`. None is an empty cell.

    `if_any`: people see nothing where there are no rows.
    """
    made = columns if isinstance(columns, Columns) else Columns(columns)
    listed = [list(row) for row in rows]
    found = _Told.document
    if found is not None:
        found[key] = [dict(zip(made.names, map(_plain, row), strict=True)) for row in listed]
        return
    if if_any and not listed:
        return
    write(f"{inert(title)}\n")
    cells = [[_text(value) for value in row] for row in listed]
    write(table_form.written(made.read, cells, made.kinds) if cells else "  none\n\n")


def say(sentence: str, **facts: object) -> None:
    """A sentence; a document holds it under `said`, and the facts under their names."""
    found = _Told.document
    if found is None:
        write(f"{inert(sentence)}\n")
        return
    found["said"].append(sentence)
    found.update({name: _plain(value) for name, value in facts.items()})


def notice(text: str) -> None:
    """A notice: it fails nothing."""
    found = _Told.document
    if found is None:
        write_error(f"notice: {inert(text)}\n")
        return
    found["notices"].append(text)


def problem(text: str, code: str | None = None) -> None:
    """A fault, although the command goes on; it is told on stderr, and in a document under `problems`."""
    found, said = _Told.document, spoken(text)
    if found is None:
        write_error(f"{inert_lines(said)}\n")
        return
    found["problems"].append({"code": code, "message": said})


def whole(content: Mapping[str, Any]) -> None:
    """A text that is JSON in itself."""
    if _Told.document is not None:
        _Told.document.update(content)
    else:
        write(json.dumps(content, indent=2) + "\n")


def progress(line: str) -> None:
    """How far a command is: for people, and never part of what it says in the end."""
    if _Told.document is None:
        write_error(f"{inert(spoken(line))}\n")


def refusal(code: str, message: str, *, transient: bool, as_json: bool) -> None:
    """Why the command did nothing, or stopped: lines on stderr, or one object on one line."""
    said = spoken(message)
    if as_json:
        told = {"code": code, "message": said, "transient": transient}
        write_error(json.dumps({"error": told}) + "\n")
    else:
        write_error("".join(f"{line}\n" for line in inert_lines(said).splitlines()))


def _text(value: object) -> str:
    """A cell as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={'NULL' if each is None else each}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)


def _plain(value: object) -> Any:
    """The same as JSON has it: numbers stay numbers, moments are ISO 8601."""
    if isinstance(value, Ago):
        return _plain(value.moment)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)
