"""Rows by outcome of each table of each link, as `plan` and `synchronize` show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from concord.jobs.link import COUNTS
from concord.terminal.shown import Columns, is_document, show


@dataclass(frozen=True, slots=True)
class Carried:
    """One link's rows, done or planned, by table."""

    source: str
    target: str
    tables: Iterable[Mapping[str, Any]]  #: as `TableReport` is recorded


def show_links(title: str, links: Iterable[Carried]) -> None:
    """A table for each link; a document has all in one list. Tables of which there is nothing to say are left out for
    people."""
    if is_document():
        rows = [[each.source, each.target, *_row(table)] for each in links for table in each.tables]
        show("tables", title, ("source", "target", "table", *COUNTS, "stopped"), rows)
        return
    columns = Columns(("table", *COUNTS, "stopped"), counts=COUNTS, prose=("stopped",))
    for each in links:
        told = [row for row in map(_row, each.tables) if any(row[1:])]
        show("tables", f"{title}, {each.source} → {each.target}", columns, told)


def _row(table: Mapping[str, Any]) -> list[object]:
    return [table["table"], *(table.get(count, 0) for count in COUNTS), table.get("stopped")]
