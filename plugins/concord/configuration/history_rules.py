"""The rules of change histories: one replication one way writes each, by operations on rows (S0-49)."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.replication import ReplicationSettings
from concord.configuration.settings import TableSettings
from concord.jobs.kept_history import KeptHistory


def history_findings(
    name: str, replication: ReplicationSettings, tables: tuple[TableSettings, ...]
) -> Iterator[Finding]:
    """Mistakes in one replication's histories."""
    path = ("replications", name, "history")
    if not replication.history:
        return
    if replication.both_ways:
        text = f"is kept where the publisher's users alone write, and they are {replication.updates}; take it out"
        yield Finding(path, text)
    if replication.procedures:
        text = "has a version of each change, and a call travels without the changes it makes; take out `procedures`"
        yield Finding(path, text)
    known = {str(each.table): each for each in tables}
    for table, kept in replication.history.items():
        here = (*path, str(table))
        if known and str(table) not in known:
            yield Finding(here, f"unknown table '{table}'; {did_you_mean(str(table), known)}")
        elif known:
            yield from _clashes(here, kept.kept, known[str(table)])
    yield from _twice(path, replication)


def _clashes(path: Path, kept: KeptHistory, table: TableSettings) -> Iterator[Finding]:
    """Of the columns that the configuration names."""
    if len(set(kept.own)) < len(kept.own):
        yield Finding(
            (*path, "version"), f"a history has a column {kept.version} of its own; choose another name"
        )
    for column in sorted({*(table.key or ()), *(table.columns or ())} & set(kept.own)):
        text = f"the table has a column {column}, which its history has of its own; choose another name, or rename it"
        yield Finding(path, text)


def _twice(path: Path, replication: ReplicationSettings) -> Iterator[Finding]:
    """One history is of one table."""
    places = [str(each.table) for each in replication.history.values()]
    for place in sorted({each for each in places if places.count(each) > 1}):
        yield Finding(path, f"{place} is the history of two tables; give each its own")
