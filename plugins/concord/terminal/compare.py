"""`python -m concord compare`: what differs, with both rows; the exit status says whether anything does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from concord.jobs.comparison import CompareReport, Difference, Repair
from concord.orchestration.tasks.compare import CompareOperator, CompareParameters
from concord.terminal.pace_shown import shown
from concord.terminal.shown import Columns, show

_COUNTS = ("equal", "differing", "versions", "only_source", "only_target", "in_flight")


def compare(asked: argparse.Namespace, owner: str) -> int:
    """0 when the sites are equal or were repaired, 1 when they differ or a table could not be compared.

    Raises a ConcordError.
    """
    wanted = CompareParameters(tables=asked.table, repair=asked.repair or "none", prefer=asked.prefer)
    operator = CompareOperator(task_id="compare", synchronization=asked.synchronization)
    with shown() as operator.tell:
        report = operator.compare(wanted, owner)
    _print(report)
    differ = report.found and report.repair is not Repair.APPLY
    return 1 if differ or report.stopped else 0


def _print(report: CompareReport) -> None:
    source, target = report.source, report.target
    rows_at = {"source_rows": f"rows at {source}", "target_rows": f"rows at {target}"}
    only_at = {"only_source": f"only at {source}", "only_target": f"only at {target}"}
    counted = [
        (table.table, table.source_rows, table.target_rows, *(getattr(table, count) for count in _COUNTS))
        for table in report.tables
    ]
    columns = Columns(("table", *rows_at, *_COUNTS), {**rows_at, **only_at}, counts=_COUNTS)
    show("tables", f"{report.synchronization}: compared", columns, counted)
    stopped = Columns(("table", "because"), prose=("because",))
    show("stopped", "Not compared", stopped, report.stopped.items(), if_any=True)
    sides = {"at_source": f"at {source}", "at_target": f"at {target}"}
    columns = Columns(("table", "key", "kind", *sides, "repair"), sides, prose=(*sides, "repair"))
    show("differences", "Differences", columns, map(_shown, report.differences), if_any=True)
    written = {"written_at_source": f"written at {source}", "written_at_target": f"written at {target}"}
    show("repaired", "Repaired", Columns(("table", *written), written), _repaired(report), if_any=True)


def _repaired(report: CompareReport) -> Iterator[tuple[object, ...]]:
    if report.repair is Repair.APPLY:
        for table in report.tables:
            yield table.table, table.written.get(report.source, 0), table.written.get(report.target, 0)


def _shown(difference: Difference) -> tuple[object, ...]:
    ours, theirs = difference.source_row or {}, difference.target_row or {}
    unlike = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return (
        difference.table,
        difference.key,
        difference.kind,
        _side(difference.source_row, difference.source_version, unlike),
        _side(difference.target_row, difference.target_version, unlike),
        difference.remedy,
    )


def _side(row: Mapping[str, Any] | None, version: Mapping[str, Any] | None, unlike: list[str]) -> str:
    """The columns that differ, or the whole row where the other site has none; and the version."""
    content = "no row" if row is None else ", ".join(f"{name}={_value(row.get(name))}" for name in unlike)
    stamp = "never changed" if version is None else "{origin} {changed_at} {derived}".format(**version)
    return f"{content} [{stamp}]".strip()


def _value(value: str | None) -> str:
    return "NULL" if value is None else value
