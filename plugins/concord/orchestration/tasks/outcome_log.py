"""How a task's log ends: its outcome as a table, one line of the log for each of the table's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from concord.jobs.link import COUNTS, TableReport
from concord.messages.event_log import logger_named
from concord.messages.inert import inert

logger = logger_named("concord.outcome")

_COUNTS = (*COUNTS, "retried")

#: (table, type of conflict) → how many.
Conflicts = Mapping[tuple[str, str], int]
_NONE: Conflicts = MappingProxyType({})


def log_outcome(title: str, tables: Iterable[TableReport], conflicts: Conflicts = _NONE) -> None:
    """Rows per table and outcome, then conflicts by type; outcomes that no row had are left out."""
    listed = list(tables)
    total = Counter({count: sum(getattr(table, count) for table in listed) for count in _COUNTS})
    shown = [count for count in _COUNTS if total[count]] or ["acquired"]
    rows = [[table.table, *(getattr(table, count) for count in shown)] for table in listed]
    rows += [["all", *(total[count] for count in shown)]] if len(listed) > 1 else []
    log_table(title, ["table", *shown], rows)
    if conflicts:
        found = [[*kind, count] for kind, count in sorted(conflicts.items())]
        log_table("conflicts by type", ["table", "type", "conflicts"], found)
    for table in listed:
        if table.stopped is not None:
            logger.warning("%s was left out: %s", table.table, table.stopped)


def log_notices(notices: Iterable[str]) -> None:
    """For a person; nothing failed."""
    for notice in notices:
        logger.warning("%s", notice)


def log_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns as wide as their longest cell: texts to the left, numbers to the right."""
    lines = [list(columns), *([_cell(value) for value in row] for row in rows)]
    numbers = [all(line[at].isdigit() for line in lines[1:]) for at in range(len(columns))]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    logger.info("%s", title)
    for line in lines:
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(line, widths, numbers, strict=True)
        ]
        logger.info("%s", f"  {'  '.join(cells)}".rstrip())


def _cell(value: Any) -> str:
    """As wide as the line is: a name of a table may hold any sign."""
    return "" if value is None else inert(str(value))
