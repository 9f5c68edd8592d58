"""`python -m concord compare`: what differs, with both rows; the exit status says whether anything does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from concord.configuration.configuration import Configuration
from concord.jobs.comparison import CompareReport, Difference, Repair
from concord.jobs.replication import of_replication
from concord.messages.errors import ParametersRefused
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import replication_compare
from concord.orchestration.tasks.compare import CompareOperator, CompareParameters
from concord.orchestration.tasks.replication_compare import CompareReplicationParameters
from concord.terminal.pace_shown import shown
from concord.terminal.shown import Columns, show

_COUNTS = ("equal", "differing", "versions", "only_source", "only_target", "in_flight")


def compare(asked: argparse.Namespace, configuration: Configuration, owner: str) -> int:
    """0 when the sites are equal or were repaired, 1 when they differ or a table could not be compared.

    Raises a ConcordError.
    """
    report = (
        _replication(asked, configuration, owner)
        if asked.name in configuration.replications
        else _pair(asked, owner)
    )
    _print(asked.name, report)
    differ = report.found and report.repair is not Repair.APPLY
    return 1 if differ or report.stopped else 0


def _pair(asked: argparse.Namespace, owner: str) -> CompareReport:
    wanted = CompareParameters(tables=asked.table, repair=asked.repair or "none", prefer=asked.prefer)
    operator = CompareOperator(task_id="compare", synchronization=asked.name)
    with shown() as operator.tell:
        return operator.compare(wanted, owner)


def _replication(asked: argparse.Namespace, configuration: Configuration, owner: str) -> CompareReport:
    if asked.repair or asked.prefer:
        raise ParametersRefused(
            f"{asked.name} is a replication: it is compared, and not repaired. Mend the rows at the subscriber, or copy"
            f" its tables anew by `python -m concord replicate {asked.name} --initialize --replace`"
        )
    wanted = CompareReplicationParameters(tables=asked.table)
    with shown() as tell:
        return replication_compare.compare(repository(), configuration, asked.name, wanted, owner, tell)


def _print(name: str, report: CompareReport) -> None:
    source, target = report.source, report.target
    rows_at = {"source_rows": f"rows at {source}", "target_rows": f"rows at {target}"}
    only_at = {"only_source": f"only at {source}", "only_target": f"only at {target}"}
    counted = [
        (table.table, table.source_rows, table.target_rows, *(getattr(table, count) for count in _COUNTS))
        for table in report.tables
    ]
    columns = Columns(("table", *rows_at, *_COUNTS), {**rows_at, **only_at}, counts=_COUNTS)
    show("tables", f"{name}: compared", columns, counted)
    stopped = Columns(("table", "because"), prose=("because",))
    show("stopped", "Not compared", stopped, report.stopped.items(), if_any=True)
    sides = {"at_source": f"at {source}", "at_target": f"at {target}"}
    columns = Columns(("table", "key", "kind", *sides, "repair"), sides, prose=(*sides, "repair"))
    versioned = not of_replication(report.synchronization)
    found = (_shown(each, versioned=versioned) for each in report.differences)
    show("differences", "Differences", columns, found, if_any=True)
    written = {"written_at_source": f"written at {source}", "written_at_target": f"written at {target}"}
    show("repaired", "Repaired", Columns(("table", *written), written), _repaired(report), if_any=True)


def _repaired(report: CompareReport) -> Iterator[tuple[object, ...]]:
    if report.repair is Repair.APPLY:
        for table in report.tables:
            yield table.table, table.written.get(report.source, 0), table.written.get(report.target, 0)


def _shown(difference: Difference, *, versioned: bool) -> tuple[object, ...]:
    ours, theirs = difference.source_row or {}, difference.target_row or {}
    unlike = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    source_version, target_version = (
        _version(each) if versioned else "" for each in (difference.source_version, difference.target_version)
    )
    return (
        difference.table,
        difference.key,
        difference.kind,
        (_row(difference.source_row, unlike) + source_version).strip(),
        (_row(difference.target_row, unlike) + target_version).strip(),
        difference.remedy,
    )


def _row(row: Mapping[str, Any] | None, unlike: list[str]) -> str:
    """The columns that differ, or the whole row where the other site has none."""
    return "no row" if row is None else ", ".join(f"{name}={_value(row.get(name))}" for name in unlike)


def _version(version: Mapping[str, Any] | None) -> str:
    stamp = "never changed" if version is None else "{origin} {changed_at} {derived}".format(**version)
    return f" [{stamp}]"


def _value(value: str | None) -> str:
    return "NULL" if value is None else value
