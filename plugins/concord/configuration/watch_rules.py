"""A watch needs two things of its synchronization: a schedule behind it, and tables that say when they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.configuration.finding import Finding
from concord.configuration.settings import SynchronizationSettings, TableSettings


def watch_findings(
    name: str, pair: SynchronizationSettings, tables: Sequence[TableSettings]
) -> Iterator[Finding]:
    """Every reason not to watch a synchronization."""
    if pair.watch is None:
        return
    path = ("synchronizations", name, "watch")
    if pair.schedule is None:
        yield Finding(
            path,
            "needs a schedule beside it, which repeats a run that failed and finds commits whose announcement"
            " was lost; write one such as schedule: '*/15 * * * *'",
        )
    if marked := ", ".join(str(table.table) for table in tables if table.tracking):
        yield Finding(
            path,
            f"{marked}: has marks of the application and no triggers, so nobody can tell of its commits; leave watch"
            " out, or put these tables into a synchronization of their own",
        )
