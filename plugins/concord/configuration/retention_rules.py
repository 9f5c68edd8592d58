"""How long versions are kept, beside the tolerance of marks and the pauses of schedules (S4-076)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from concord.configuration.finding import Finding
from concord.configuration.sections import Sections
from concord.configuration.settings import TableSettings
from concord.values.cron import longest_gap


def kept_versions(sections: Sections) -> Iterator[Finding]:
    """An edit that was registered must not be forgotten while its mark may be looked at once more."""
    tables = [table for settings in sections.replication_sets.values() for table in settings.tables]
    longest = _longest_tolerance(tables)
    if sections.retention is not None and longest is not None and sections.retention.versions <= longest:
        yield Finding(("retention", "versions"), _not_above(longest))
    for name, pair in sections.synchronizations.items():
        longest = _longest_tolerance(sections.tables(pair))
        if longest is not None and pair.tombstone_retention <= longest:
            yield Finding(("synchronizations", name, "tombstone_retention"), _not_above(longest))
        if pair.schedule and pair.tombstone_retention < longest_gap(pair.schedule):
            text = "shorter than the longest pause of the schedule; keep tombstones for at least that long"
            yield Finding(("synchronizations", name, "tombstone_retention"), text)


def _longest_tolerance(tables: Iterable[TableSettings]) -> timedelta | None:
    return max((table.tracking.tolerance for table in tables if table.tracking), default=None)


def _not_above(tolerance: timedelta) -> str:
    minutes = tolerance.total_seconds() / 60
    return (
        f"not longer than the tolerance of marks ({minutes:g} min); keep versions for twice as long at least"
    )
