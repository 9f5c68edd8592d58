"""The rules that tie replications to sites and sets, to each other, and to all else that writes their tables."""

from __future__ import annotations

from collections.abc import Iterator

from concord.configuration.consumer_rules import consumer_findings
from concord.configuration.field import did_you_mean
from concord.configuration.finding import Finding, Path
from concord.configuration.history_rules import history_findings
from concord.configuration.replication import ReplicationSettings
from concord.configuration.sections import Sections
from concord.configuration.settings import TableSettings
from concord.configuration.snapshot import Place
from concord.jobs.replication import Conversions
from concord.jobs.site import Capture
from concord.jobs.snapshot import SnapshotKind
from concord.tables.privacy import Treatment
from concord.tables.replication_set import NotOwned

#: Settings of a table that only links know, and what they do.
_OF_LINKS = {
    "tracking": "read marks",
}


def replication_findings(sections: Sections) -> Iterator[Finding]:
    """Every mistake in and between replications."""
    for name, replication in sections.replications.items():
        yield from _unknown_names(name, replication, sections)
        yield from _own_rules(name, replication, sections)
        yield from _settings_of_links(replication, sections)
        yield from _versioned_tables(name, replication, sections)
        yield from history_findings(name, replication, _tables(replication, sections))
        yield from _captured_tables(name, replication, sections)
    yield from consumer_findings(sections)
    yield from _written_twice(sections)
    yield from _hubs(sections)
    yield from _mixed_hubs(sections)
    yield from _blind_snapshots(sections)
    yield from _rings(sections)


def _unknown_names(name: str, replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    for key, site in (("publisher", replication.publisher), ("subscriber", replication.subscriber)):
        if site not in sections.site_names:
            text = f"unknown site '{site}'; {did_you_mean(site, sections.site_names)}"
            yield Finding(("replications", name, key), text)
    if (wanted := replication.replication_set) not in sections.set_names:
        text = f"unknown replication set '{wanted}'; {did_you_mean(wanted, sections.set_names)}"
        yield Finding(("replications", name, "replication_set"), text)


def _own_rules(name: str, replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    """Two sites (S4-172), a login that reads the log, and DAGs of its own."""
    if replication.publisher == replication.subscriber:
        text = "publisher and subscriber are the same site; name another site"
        yield Finding(("replications", name, "subscriber"), text)
    yield from _capture(name, replication, sections)
    yield from _starts(name, replication)
    yield from _decided(name, replication)
    yield from _calls(name, replication)
    if name in sections.synchronizations:
        text = f"a synchronization has this name, and both would make the DAG initialize__{name}; rename one"
        yield Finding(("replications", name), text)


def _capture(name: str, replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    """A log has a login that reads it; triggers do not tell which site's users wrote what (S0-03)."""
    if replication.capture is Capture.TRIGGERS:
        if replication.both_ways:
            text = "where both sites write, changes come from the log; write capture: log"
            yield Finding(("replications", name, "capture"), text)
        return
    for source, _ in replication.directions:
        site = sections.sites.get(source)
        if site is not None and site.log_reader is None:
            text = (
                f"site '{source}' has no log_reader; name there a connection with REPLICATION, or write capture:"
                " triggers"
            )
            yield Finding(("replications", name, "publisher"), text)


def _starts(name: str, replication: ReplicationSettings) -> Iterator[Finding]:
    """A run starts in one way; one that stays in the first direction would keep the other waiting."""
    if replication.watch is not None and replication.capture is Capture.TRIGGERS:
        text = "looks at the log, which capture: triggers does without; write a schedule, or continuous"
        yield Finding(("replications", name, "watch"), text)
    if replication.continuous is None:
        return
    path = ("replications", name, "continuous")
    if replication.schedule is not None:
        text = "its runs follow one another, and a schedule beside it starts none; keep one of the two"
        yield Finding(path, text)
    if replication.watch is not None:
        yield Finding(
            path, "its runs follow one another, and a watch beside it starts none; keep one of the two"
        )


def _decided(name: str, replication: ReplicationSettings) -> Iterator[Finding]:
    """Conflicts are decided where updates are queued, and row versions make conversions needless."""
    if replication.conflict is not None and not replication.queued:
        text = f"decides where updates are queued, and they are {replication.updates}; write updates: queued"
        yield Finding(("replications", name, "conflict"), text)
    if replication.version_column and not replication.queued:
        text = f"shows versions where updates are queued, and they are {replication.updates}; write updates: queued"
        yield Finding(("replications", name, "version_column"), text)
    if replication.queued and replication.skip:
        text = "a queued transaction is replayed whole, or not at all; take it out, and use `entry skip`"
        yield Finding(("replications", name, "skip"), text)
    if replication.queued and replication.conversions is not Conversions.COUNT:
        text = "where updates are queued, rows differ until they are heard; take it out"
        yield Finding(("replications", name, "conversions"), text)


def _calls(name: str, replication: ReplicationSettings) -> Iterator[Finding]:
    """A call goes from the publisher to the subscriber, and its marks stand in the log (S4-132)."""
    path = ("replications", name, "procedures")
    if replication.procedures and replication.both_ways:
        yield Finding(
            path, f"calls go one way, and users of both sites write with updates: {replication.updates}"
        )
    if replication.procedures and replication.capture is Capture.TRIGGERS:
        yield Finding(path, "calls come from the log; write capture: log, or let the rows travel")
    for index, each in enumerate(replication.procedures):
        if each in replication.procedures[:index]:
            yield Finding((*path, index), f"{each} stands here twice; keep the first")


def _versioned_tables(name: str, replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    """A version column belongs to a table of the set."""
    known = {str(each.table) for each in _tables(replication, sections)}
    for table in map(str, replication.version_column):
        if known and table not in known:
            text = f"unknown table '{table}'; {did_you_mean(table, known)}"
            yield Finding(("replications", name, "version_column"), text)


def _settings_of_links(replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    """Values travel as they are in the log: what would change them is refused, never left undone."""
    for index, table in enumerate(_tables(replication, sections)):
        path = ("replication_sets", replication.replication_set, "tables", index)
        for key, verb in _OF_LINKS.items():
            if getattr(table, key):
                text = f"a replication does not yet {verb}; give it a set of its own without {key}"
                yield Finding((*path, key), text)
        yield from _owned(path, replication, table)
        if table.where and replication.capture is Capture.TRIGGERS:
            text = "triggers do not yet choose rows; write capture: log, or give it a set without where"
            yield Finding((*path, "where"), text)
        for key in ("columns", "where", "mappings") if replication.both_ways else ():
            if getattr(table, key):
                text = f"where both sites write, rows are whole and the same at both; give it a set without {key}"
                yield Finding((*path, key), text)
        if replication.queued and any(each is not Treatment.STORED for each in table.private.values()):
            text = "the rows that lose are logged, and a replication does not yet withhold columns of them"
            yield Finding((*path, "private"), text)


def _owned(path: Path, replication: ReplicationSettings, table: TableSettings) -> Iterator[Finding]:
    """Users of both sites write, each the rows of their own site (S2-23); nothing counts the others."""
    if table.owners and not replication.both_ways:
        text = "users of the publisher alone write; give it a set of its own without owners, or write updates: both"
        yield Finding((*path, "owners"), text)
    elif table.owners and table.not_owned is not NotOwned.REFUSE:
        text = "a replication counts no changes of others' rows; write not_owned: refuse"
        yield Finding((*path, "not_owned"), text)


def _captured_tables(name: str, replication: ReplicationSettings, sections: Sections) -> Iterator[Finding]:
    """Capture does not see what the applier writes: no link would carry it further."""
    captured = sections.replicated()
    for place in _written(replication, sections):
        if place in captured:
            text = (
                f"{place[1]} of '{place[0]}' is in a synchronization, which would not see the replayed changes; take it"
                " out of one of the two"
            )
            yield Finding(("replications", name, "subscriber"), text)


def _written_twice(sections: Sections) -> Iterator[Finding]:
    """A table has one replication or one snapshot that writes it; a hub's has the ways back of all its replications."""
    known = {(each.target, each.table): f"the snapshot '{name}'" for name, each in sections.snapshots.items()}
    for name, replication in sections.replications.items():
        for place in _places(replication, sections, replication.subscriber):
            if place in known:
                text = f"{place[1]} of '{place[0]}' is written by {known[place]} already; keep one of the two"
                yield Finding(("replications", name, "subscriber"), text)
            known.setdefault(place, f"the replication '{name}'")


def _mixed_hubs(sections: Sections) -> Iterator[Finding]:
    """Row versions are kept of all changes to a table or of none."""
    known = dict[Place, tuple[str, ReplicationSettings]]()
    for name, replication in sections.replications.items():
        for place in _places(replication, sections, replication.publisher) if replication.both_ways else ():
            other, first = known.setdefault(place, (name, replication))
            if first.updates is not replication.updates:
                text = (
                    f"{place[1]} of '{place[0]}' has updates: {first.updates} by '{other}', and {replication.updates}"
                    " here; write the same"
                )
                yield Finding(("replications", name, "updates"), text)


def _hubs(sections: Sections) -> Iterator[Finding]:
    """Replications both ways that share a table form one hub with its spokes (S2-26); nothing else writes the hub's."""
    written = {
        place: name
        for name, each in sections.replications.items()
        for place in _places(each, sections, each.subscriber)
    }
    copied = {(each.target, each.table): name for name, each in sections.snapshots.items()}
    for name, replication in sections.replications.items():
        for place in _places(replication, sections, replication.publisher) if replication.both_ways else ():
            if other := written.get(place) or copied.get(place):
                text = (
                    f"users of both sites write {place[1]}, and '{other}' writes it at '{place[0]}' as well;"
                    " let one hub publish to all the others"
                )
                yield Finding(("replications", name, "publisher"), text)


def _blind_snapshots(sections: Sections) -> Iterator[Finding]:
    """An incremental snapshot hears of changes by capture, which does not see what the applier writes."""
    written = {place for each in sections.replications.values() for place in _written(each, sections)}
    for name, snapshot in sections.snapshots.items():
        place = (snapshot.source, snapshot.relation)
        if snapshot.kind is SnapshotKind.INCREMENTAL and place in written:
            text = (
                f"{place[1]} of '{place[0]}' is written by a replication, whose changes no incremental snapshot sees;"
                " make it non_incremental"
            )
            yield Finding(("snapshots", name, "from"), text)


def _rings(sections: Sections) -> Iterator[Finding]:
    """A chain of replications, with snapshots between them or not, ends somewhere (S2-26)."""
    sources = _sources(sections)
    comes_from = {
        **{(each.target, each.table): (each.source, each.relation) for each in sections.snapshots.values()},
        **sources,
    }
    for name, replication in sections.replications.items():
        if any(
            _returns(place, comes_from) for place in _places(replication, sections, replication.subscriber)
        ):
            text = (
                "its chain of replications comes back to where it began; take one replication out of the ring"
            )
            yield Finding(("replications", name), text)


def _returns(place: Place, comes_from: dict[Place, Place]) -> bool:
    """Does the table get, through others, its own rows?"""
    seen, back = set[Place](), place
    while back in comes_from and back not in seen:
        seen.add(back)
        back = comes_from[back]
    return back == place and place in seen


def _sources(sections: Sections) -> dict[Place, Place]:
    """Where each replayed table comes from; the ways back to a hub are none of it."""
    return {
        (each.subscriber, each.name_at(table, each.subscriber)): (
            each.publisher,
            table.name_at(each.publisher),
        )
        for each in sections.replications.values()
        if each.publisher != each.subscriber
        for table in _tables(each, sections)
    }


def _written(replication: ReplicationSettings, sections: Sections) -> list[Place]:
    return [place for _, site in replication.directions for place in _places(replication, sections, site)]


def _places(replication: ReplicationSettings, sections: Sections, site: str) -> list[Place]:
    """Its tables at one of its sites."""
    return [(site, replication.name_at(table, site)) for table in _tables(replication, sections)]


def _tables(replication: ReplicationSettings, sections: Sections) -> tuple[TableSettings, ...]:
    settings = sections.replication_sets.get(replication.replication_set)
    return settings.tables if settings else ()
