"""The rules that tie the parts of a configuration together: names that exist, tables that meet once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, product

from concord.configuration.conflict_rules import conflict_findings
from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.hook_rules import hook_findings
from concord.configuration.identity import IdentitySettings
from concord.configuration.log_rules import log_findings
from concord.configuration.mapping_rules import mapping_findings
from concord.configuration.procedure_rules import sets_without_tables
from concord.configuration.replication_rules import replication_findings
from concord.configuration.retention_rules import kept_versions
from concord.configuration.sections import Sections, Synchronization
from concord.configuration.settings import (
    ReplicationSetSettings,
    SiteSettings,
    TableSettings,
)
from concord.configuration.snapshot import snapshot_rules
from concord.configuration.tracking_rules import tracking_findings
from concord.configuration.watch_rules import watch_findings
from concord.tables.replication_set import NotOwned, TableName


def broken_rules(sections: Sections) -> Iterator[Finding]:
    """Every mistake between the parts, in no particular order."""
    yield from _unknown_names(sections)
    yield from tracking_findings(sections)
    yield from log_findings(sections)
    yield from kept_versions(sections)
    yield from _shared_connections(sections.sites)
    for name, settings in sections.replication_sets.items():
        yield from _repeated_tables(name, settings)
        yield from _meeting_names(name, settings, sections.site_names)
        for index, table in enumerate(settings.tables):
            path = ("replication_sets", name, "tables", index)
            yield from mapping_findings(path, table, sections.site_names)
    for name, pair in sections.synchronizations.items():
        yield from watch_findings(name, pair, sections.tables(pair))
    yield from _unlike_twins(sections)
    for first, second in combinations(sections.resolved(), 2):
        yield from _overlap(first, second, sections)
    yield from _policies(sections)
    yield from _crossing_filters(sections)
    yield from _disconnected_sets(sections)
    yield from snapshot_rules(sections.snapshots, sections.site_names, sections.replicated())
    yield from replication_findings(sections)
    yield from _identities(sections)
    yield from sets_without_tables(sections)
    yield from hook_findings(sections)


def _unknown_names(sections: Sections) -> Iterator[Finding]:
    for name, pair in sections.synchronizations.items():
        for key, site in (("source", pair.source), ("target", pair.target)):
            if site not in sections.site_names:
                text = f"unknown site '{site}'; {did_you_mean(site, sections.site_names)}"
                yield Finding(("synchronizations", name, key), text)
        if (wanted := pair.replication_set) not in sections.set_names:
            text = f"unknown replication set '{wanted}'; {did_you_mean(wanted, sections.set_names)}"
            yield Finding(("synchronizations", name, "replication_set"), text)
    for name, settings in sections.replication_sets.items():
        for index, table in enumerate(settings.tables):
            for key, sites in (("at", table.at), ("owners", table.owners)):
                for site in sites.keys() - set(sections.site_names):
                    text = f"unknown site '{site}'; {did_you_mean(site, sections.site_names)}"
                    yield Finding(("replication_sets", name, "tables", index, key, site), text)
            if table.not_owned is NotOwned.REFUSE and not table.owners:
                text = "no site owns a row, so nobody could change one; write owners"
                yield Finding(("replication_sets", name, "tables", index, "not_owned"), text)


def _shared_connections(sites: Mapping[str, SiteSettings]) -> Iterator[Finding]:
    """One connection is one database, whatever the letters' case (AIRFLOW_CONN_… has none)."""
    for (first, one), (second, other) in combinations(sites.items(), 2):
        if {name.lower() for name in one.connections} & {name.lower() for name in other.connections}:
            text = f"the same connection as site '{first}'; a site is a database of its own"
            yield Finding(("sites", second), text)


def _repeated_tables(name: str, settings: ReplicationSetSettings) -> Iterator[Finding]:
    seen: dict[TableName, int] = {}
    for index, table in enumerate(settings.tables):
        if table.table in seen:
            text = f"listed twice, first as tables[{seen[table.table]}]; keep one of the two"
            yield Finding(("replication_sets", name, "tables", index, "table"), text)
        seen.setdefault(table.table, index)


def _meeting_names(name: str, settings: ReplicationSetSettings, sites: Collection[str]) -> Iterator[Finding]:
    """Different tables of a set that `at` gives one name at a site."""
    for (first, one), (second, other) in combinations(enumerate(settings.tables), 2):
        if one.table == other.table:
            continue
        for site in sorted(set(sites) & (one.at.keys() | other.at.keys())):
            if one.name_at(site) == other.name_at(site):
                text = f"at site '{site}' this is the same table as tables[{first}]; give each its own name"
                path = ("at", site) if site in other.at else ("table",)
                yield Finding(("replication_sets", name, "tables", second, *path), text)


def _unlike_twins(sections: Sections) -> Iterator[Finding]:
    """A table has one shadow at a site, whichever sets list it: one name and one key, and no other table's name."""
    listed = [
        (name, index, table)
        for name, settings in sections.replication_sets.items()
        for index, table in enumerate(settings.tables)
    ]
    for (one_set, one_index, one), (other_set, other_index, other) in combinations(listed, 2):
        where = f"replication_sets.{one_set}.tables[{one_index}]"
        path = ("replication_sets", other_set, "tables", other_index, "table")
        meet = any(one.name_at(site) == other.name_at(site) for site in sections.site_names)
        if one.table != other.table and str(one.table) == str(other.table):
            yield Finding(
                path, f"reads the same as {where}, which is another table; rename one of the schemas"
            )
        elif one_set != other_set and meet and _kept_as(one) != _kept_as(other):
            text = (
                f"the same table as {where} at a site, under another name or key, or with other columns or tracking, or"
                " other private columns or refused owners; give both entries the same"
            )
            yield Finding(path, text)


def _kept_as(table: TableSettings) -> tuple[object, ...]:
    owned = table.owners if table.not_owned is NotOwned.REFUSE else {}
    owners = {site: str(where) for site, where in owned.items()}
    return (
        *(table.table, table.key, table.columns, dict(table.mappings), table.tracking, dict(table.private)),
        *(table.not_owned, owners),
    )


def _overlap(first: Synchronization, second: Synchronization, sections: Sections) -> Iterator[Finding]:
    """Synchronizations that share a table: not on the same two sites, and with the same rules (rule 4)."""
    (name, one), (other_name, other) = first, second
    shared = [
        (table, twin)
        for table in sections.tables(one)
        for twin in sections.tables(other)
        if any(table.name_at(site) == twin.name_at(site) for site in set(one.sites) & set(other.sites))
    ]
    if shared and set(one.sites) == set(other.sites):
        text = f"the same two sites and table as '{name}', which runs both ways; remove one of the two"
        yield Finding(("synchronizations", other_name), text)
    elif any((t.conflicts or one.conflicts) != (twin.conflicts or other.conflicts) for t, twin in shared):
        text = (
            f"resolvers differ from '{name}', which shares a table; give both the same ones in the same order"
        )
        yield Finding(("synchronizations", other_name), text)


def _policies(sections: Sections) -> Iterator[Finding]:
    """Every table's conflict policy, where it is written, against the synchronizations that share the table."""
    pairs = sections.resolved()
    for name, pair in pairs:
        for index, table in enumerate(sections.tables(pair)):
            edges = [
                other.sites
                for _, other in pairs
                if any(each.table == table.table for each in sections.tables(other))
            ]
            own, holder = (table.conflicts, table) if table.conflicts else (pair.conflicts, pair)
            path: Path = ("synchronizations", name)
            if holder is table:
                path = ("replication_sets", pair.replication_set, "tables", index)
            key = "conflict" if holder.conflict else "resolvers"
            yield from conflict_findings((*path, key), own, table, edges, sections.sites)


def _crossing_filters(sections: Sections) -> Iterator[Finding]:
    """Two paths between the same sites carry one table under different filters. A row that leaves the one and not
    the other would be removed and sent again without end (rule 9)."""
    pairs = sections.resolved()
    for (name, one), (other_name, other) in combinations(pairs, 2):
        for table, twin in product(sections.tables(one), sections.tables(other)):
            if table.table == twin.table and str(table.where) != str(twin.where):
                carrying = [
                    pair.sites
                    for _, pair in pairs
                    if any(each.table == table.table for each in sections.tables(pair))
                ]
                if _on_one_ring(one.sites, other.sites, carrying):
                    text = (
                        f"{table.table} goes round in a ring with '{name}', which carries it under another row"
                        " filter; give all synchronizations of the ring the same one"
                    )
                    yield Finding(("synchronizations", other_name), text)


def _on_one_ring(one: tuple[str, str], other: tuple[str, str], pairs: Collection[tuple[str, str]]) -> bool:
    """Whether a ring without a repeated site leads over both pairs: then no single site separates them."""
    for site in {site for pair in pairs for site in pair}:
        near, far = next(end for end in one if end != site), next(end for end in other if end != site)
        groups = _groups([pair for pair in pairs if site not in pair])
        if near != far and not any({near, far} <= group for group in groups):
            return False
    return True


def _identities(sections: Sections) -> Iterator[Finding]:
    """Every site of a set has its share of the numbers, and shares are given to sites that exist (S2-18)."""
    for name, settings in sections.replication_sets.items():
        joined = {
            site for _, pair in sections.resolved() if pair.replication_set == name for site in pair.sites
        }
        joined |= {
            site
            for each in sections.replications.values()
            if each.both_ways and each.replication_set == name
            for site in (each.publisher, each.subscriber)
        }
        places: list[tuple[Path, IdentitySettings | None]] = [(("replication_sets", name), settings.identity)]
        places += [
            (("replication_sets", name, "tables", index), table.identity)
            for index, table in enumerate(settings.tables)
        ]
        for path, given in places:
            if given is None:
                continue
            kind = "slot" if given.ranges is None else "ranges"
            sites = given.identity().sites
            for site in sorted(sites - set(sections.site_names)):
                text = f"unknown site; {did_you_mean(site, sections.site_names)}"
                yield Finding((*path, "identity", kind, site), text)
            for site in sorted(joined - sites):
                yield Finding((*path, "identity", kind), f"site '{site}' has none; give it its own")


def _disconnected_sets(sections: Sections) -> Iterator[Finding]:
    """A replication set whose sites fall into groups that no synchronization joins never becomes equal."""
    pairs = sections.resolved()
    if not sections.complete or len(pairs) + len(sections.self_links()) < len(sections.synchronizations):
        return
    for name in sections.set_names:
        groups = _groups([pair.sites for _, pair in pairs if pair.replication_set == name])
        if len(groups) > 1:
            listed = " and ".join("/".join(sorted(group)) for group in groups)
            text = f"its sites fall apart into {listed}; join them by a synchronization, or use two sets"
            yield Finding(("replication_sets", name), text)


def _groups(pairs: Collection[tuple[str, str]]) -> list[set[str]]:
    """The sites that synchronizations join, directly or through others."""
    groups: list[set[str]] = []
    for pair in pairs:
        joined = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in joined] + [set(pair).union(*joined)]
    return groups
