"""The rules of hooks: whether anything is written where they stand, and what of it they may see (S3-13)."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.replication import ReplicationSettings
from concord.configuration.sections import Sections
from concord.configuration.settings import TableSettings
from concord.configuration.snapshot import Place

#: Settings of a table that a row which a hook changes might break.
_UNFIT = {
    "where": "a row filter, which a changed row might leave",
    "mappings": "mappings, through which a changed row might not come back",
    "tracking": "marks of the application, which say what a version is",
}


def hook_findings(sections: Sections) -> Iterator[Finding]:
    """Every mistake in the hooks of tables."""
    carried = _carried(sections)
    for name, settings in sections.replication_sets.items():
        for index, table in enumerate(settings.tables):
            for site in table.hooks:
                path = ("replication_sets", name, "tables", index, "hooks", site)
                yield from _of_table(path, name, table, site, sections)
                yield from _added(path, table, site, carried)


def _of_table(
    path: Path, set_name: str, table: TableSettings, site: str, sections: Sections
) -> Iterator[Finding]:
    if site not in sections.site_names:
        yield Finding(path, f"unknown site '{site}'; {did_you_mean(site, sections.site_names)}")
        return
    replaying = [
        each
        for each in sections.replications.values()
        if each.replication_set == set_name and any(target == site for _, target in each.directions)
    ]
    linked = [
        pair for _, pair in sections.resolved() if pair.replication_set == set_name and site in pair.sites
    ]
    if sections.complete and not replaying and not linked:
        text = f"nothing writes {table.table} at '{site}': no synchronization or replication of the set does"
        yield Finding(path, f"{text}; name another site, or take the hook out")
    for key, why in _UNFIT.items():
        if getattr(table, key):
            yield Finding(path, f"the table has {why}; take one of the two out")
    for each in replaying:
        yield from _of_replication(path, table, site, each)


def _of_replication(
    path: Path, table: TableSettings, site: str, replication: ReplicationSettings
) -> Iterator[Finding]:
    if replication.queued:
        yield Finding(path, "where updates are queued, row versions decide; take the hook out")
    if table.table in replication.history and site == replication.subscriber:
        yield Finding(path, "a history is kept of rows as they came; take the hook or the history out")
    if replication.skip:
        yield Finding(path, "what a skip leaves out no hook would see; take one of the two out")


def _added(path: Path, table: TableSettings, site: str, carried: dict[Place, str]) -> Iterator[Finding]:
    """Rows that a hook adds are written as the applier, which capture does not see: they would stay here."""
    for added in table.hooks[site].adds:
        if (site, added) in carried:
            text = f"{carried[site, added]} has it at '{site}', and would not hear of the rows; choose another table"
            yield Finding((*path, "adds", str(added)), text)


def _carried(sections: Sections) -> dict[Place, str]:
    """The tables that something reads or writes, and by whom."""
    found: dict[Place, str] = {
        place: f"the replication set of {name}" for place, name in sections.replicated().items()
    }
    for name, each in sections.replications.items():
        for site in each.sites:
            settings = sections.replication_sets.get(each.replication_set)
            for table in settings.tables if settings else ():
                found[site, each.name_at(table, site)] = f"the replication '{name}'"
    for name, snapshot in sections.snapshots.items():
        found[snapshot.target, snapshot.table] = f"the snapshot '{name}'"
        found[snapshot.source, snapshot.relation] = f"the snapshot '{name}'"
    return found
