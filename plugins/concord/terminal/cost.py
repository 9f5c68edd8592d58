"""`python -m concord cost`: changes beside a copy of the same tables, and which costs less (S0-05)."""

from __future__ import annotations

import argparse

from concord.configuration.configuration import Configuration
from concord.messages.how_many import how_many
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks.cost import Cheaper, Cost, costs_of
from concord.terminal.shown import say, show

_COLUMNS = (
    *("source", "target", "runs", "changes_a_run", "bytes_a_run", "seconds_a_run"),
    *("rows_of_tables", "bytes_of_tables", "seconds_of_copy", "cheaper"),
)


def run(asked: argparse.Namespace, configuration: Configuration) -> int:
    """The exit status. Raises a ConcordError."""
    found = list(costs_of(repository(), configuration, asked.name))
    show("costs", f"{asked.name}: a run beside a copy of all rows", _COLUMNS, map(_row, found))
    for each in found:
        say(said(each))
    return 0


def _row(cost: Cost) -> tuple[object, ...]:
    of_run = (round(cost.changes), round(cost.bytes), _rounded(cost.seconds)) if cost.runs else (None,) * 3
    tables = (cost.set_rows, cost.set_bytes, _rounded(cost.copy_seconds))
    return (cost.source, cost.target, cost.runs, *of_run, *tables, cost.cheaper.value)


def _rounded(seconds: float | None) -> str | None:
    """As text: runs of milliseconds are told apart."""
    return None if seconds is None else f"{seconds:.3g}"


def said(cost: Cost) -> str:
    """Which costs less, in a sentence."""
    way = f"{cost.source} to {cost.target}"
    rows = f"about {how_many(cost.set_rows, 'row')}"
    if not cost.runs:
        return f"{way}: no run that carried a change is recorded, so nothing can be compared with a copy of {rows}."
    changes = how_many(round(cost.changes), "change")
    if cost.copy_seconds is not None:
        facts = (
            f"a run carries {changes} in {_rounded(cost.seconds)} s, and a copy of {rows} takes about"
            f" {_rounded(cost.copy_seconds)} s"
        )
    else:
        facts = f"a run carries {changes}, and a copy {rows}; how long a copy takes is not recorded"
    return f"{way}: {facts}. {_VERDICTS[cost.cheaper]}"


_VERDICTS = {
    Cheaper.CHANGES: "Changes are cheaper.",
    Cheaper.COPY: "A copy is cheaper: a snapshot may do.",
    Cheaper.UNKNOWN: "That is too near to say which is cheaper.",
}
