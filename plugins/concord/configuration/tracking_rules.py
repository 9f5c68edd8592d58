"""Marks of the application: sites that exist, two different columns that travel as they are, a tolerance that fits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.sections import Sections
from concord.configuration.settings import TableSettings
from concord.configuration.tracking import TrackingSettings
from concord.tables.manipulation import Rename

#: A mark may be set so long before its commit in any case.
SHORTEST_TOLERANCE = timedelta(minutes=1)


def tracking_findings(sections: Sections) -> Iterator[Finding]:
    """Marks: sites that exist, two different columns, a tolerance that a transaction fits into (S4-074)."""
    for name, settings in sections.replication_sets.items():
        for index, table in enumerate(settings.tables):
            if (tracking := table.tracking) is None:
                continue
            path = ("replication_sets", name, "tables", index, "tracking")
            for site in tracking.time_zone.keys() - set(sections.site_names):
                text = f"unknown site '{site}'; {did_you_mean(site, sections.site_names)}"
                yield Finding((*path, "time_zone", site), text)
            if tracking.changed_at == tracking.deleted:
                yield Finding((*path, "deleted"), "the same column as changed_at; a mark and a flag are two")
            if tracking.tolerance < SHORTEST_TOLERANCE:
                text = "shorter than a transaction may last; write 1 minute or more"
                yield Finding((*path, "tolerance"), text)
            if table.where is not None:
                yield Finding(
                    path, "a table with a row filter; find its changes by triggers, or take the filter away"
                )
            yield from _marks_travel(table, tracking, path)


def _marks_travel(table: TableSettings, tracking: TrackingSettings, path: Path) -> Iterator[Finding]:
    """The two columns are replicated, at every site as what they are; only their names may differ."""
    marks = {"changed_at": tracking.changed_at, "deleted": tracking.deleted}
    for key, name in marks.items():
        if table.columns is not None and name not in table.columns:
            yield Finding((*path, key), "not among the replicated columns; add it to columns")
    for site, mapping in table.mappings.items():
        for operation in mapping.manipulation().operations:
            touched = set(operation.canonical) & set(marks.values())
            if touched and not isinstance(operation, Rename):
                text = f"{', '.join(sorted(touched))} is mapped at site '{site}'; a mark can only be renamed"
                yield Finding(path, text)
