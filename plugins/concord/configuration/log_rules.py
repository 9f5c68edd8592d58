"""A site whose changes are read from its log: who reads it, and which tables need more than their keys (S1-32 b)."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.conflict import ConflictSettings
from concord.configuration.finding import Finding
from concord.configuration.sections import Sections
from concord.configuration.settings import SynchronizationSettings, TableSettings
from concord.jobs.site import Capture
from concord.jobs.snapshot import SnapshotKind
from concord.rules.kinds import KINDS

_INSTEAD = "write capture: triggers at that site"


def log_findings(sections: Sections) -> Iterator[Finding]:
    """Every reason why a site's log does not tell what its synchronizations and snapshots must know."""
    logged = [name for name, site in sections.sites.items() if site.capture is Capture.LOG]
    for name in logged:
        if sections.sites[name].log_reader is None:
            text = "needs a log_reader beside it; name there a connection whose login has REPLICATION"
            yield Finding(("sites", name, "capture"), text)
    for name, pair in sections.resolved():
        for site in (each for each in pair.sites if each in logged):
            yield from _pair_findings(name, pair, site, sections.tables(pair))
    carried = sections.replicated()
    for name, snapshot in sections.snapshots.items():
        place = (snapshot.source, snapshot.relation)
        if snapshot.kind is SnapshotKind.INCREMENTAL and snapshot.source in logged and place in carried:
            text = (
                f"site '{snapshot.source}' has capture: log, which only links read; make the snapshot"
                f" non_incremental, or {_INSTEAD}"
            )
            yield Finding(("snapshots", name, "kind"), text)


def _pair_findings(
    name: str, pair: SynchronizationSettings, site: str, tables: tuple[TableSettings, ...]
) -> Iterator[Finding]:
    told = [table for table in tables if table.tracking is None]
    if pair.watch is not None and told:
        text = f"site '{site}' has capture: log and no triggers, which would tell of commits; leave watch out"
        yield Finding(("synchronizations", name, "watch"), text)
    for index, table in enumerate(tables):
        path = ("replication_sets", pair.replication_set, "tables", index)
        if table in told and table.columns is not None:
            text = (
                f"site '{site}' has capture: log, which tells that a row was updated and not in which columns;"
                f" replicate all columns, or {_INSTEAD}"
            )
            yield Finding((*path, "columns"), text)
        if table in told and table.where is not None:
            text = f"a table with a row filter, at site '{site}' with capture: log; take the filter away, or {_INSTEAD}"
            yield Finding((*path, "where"), text)
        if table in told and (merging := _merging(table.conflicts or pair.conflicts)):
            text = (
                f"{', '.join(merging)}: needs the row as it was before an edit, and the log of site '{site}' tells its"
                f" key alone (capture: log); choose between the rows, or {_INSTEAD}"
            )
            yield Finding(path, text)


def _merging(conflict: ConflictSettings) -> list[str]:
    """The resolvers of a policy that need the version that two others have in common."""
    policy = conflict.policy({})
    return [name for name, _ in policy.named if KINDS[name].merges] if policy.keeps_base else []
