"""A table for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table


def show(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows under a title and their columns' names; None is an empty cell."""
    console = Console(markup=False)
    table = Table(*columns)
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    console.print(title)
    console.print(table if table.row_count else "  none\n")
