"""Oddities that are no mistake in the configuration: an entry that does nothing, or may not do what was meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from concord.configuration.finding import Finding
from concord.configuration.replication import ReplicationSettings
from concord.configuration.sections import Sections
from concord.configuration.settings import SynchronizationSettings
from concord.tables.ownership import disjoint
from concord.values.cron import longest_gap


def notices(sections: Sections) -> Iterator[Finding]:
    """Every harmless oddity, in no particular order."""
    yield from _nothing_to_do(sections)
    yield from _self_links(sections)
    yield from _shared_ownership(sections)
    yield from _endless_histories(sections)
    yield from _hopeless_objectives(sections)


def _nothing_to_do(sections: Sections) -> Iterator[Finding]:
    if not (sections.synchronizations or sections.snapshots or sections.replications):
        text = "no synchronization, no snapshot and no replication has a use for them; write one"
        yield Finding(("sites",), text)


def _self_links(sections: Sections) -> Iterator[Finding]:
    """S4-175: all sites share one configuration, and a site has nothing to send itself."""
    for name, pair in sections.self_links():
        text = f"{pair.source} is both source and target; this has no effect, and makes no link and no DAG"
        yield Finding(("synchronizations", name), text)


def _endless_histories(sections: Sections) -> Iterator[Finding]:
    """S0-50: a history grows faster than the table whose versions it keeps."""
    for name, replication in sections.replications.items():
        for table, history in replication.history.items():
            if history.keep is None:
                text = "has no `keep`, so it grows for ever with each change; `status` tells how fast"
                yield Finding(("replications", name, "history", str(table)), text)


def _hopeless_objectives(sections: Sections) -> Iterator[Finding]:
    """S2-11: where nothing but the schedule starts runs, a change waits for the next one."""
    started: list[tuple[str, str, SynchronizationSettings | ReplicationSettings]] = [
        *(("synchronizations", name, pair) for name, pair in sections.synchronizations.items()),
        *(("replications", name, replication) for name, replication in sections.replications.items()),
    ]
    for section, name, each in started:
        lag = each.objective and each.objective.lag
        if lag and each.watch is None and each.schedule and lag <= longest_gap(each.schedule):
            text = f"`{each.schedule}` lets changes wait for longer; `watch` for commits, or want less"
            yield Finding((section, name, "objective", "lag"), text)


def _shared_ownership(sections: Sections) -> Iterator[Finding]:
    """S2-23: only filters that cannot hold for one row keep two sites from changing the same one."""
    for name, settings in sections.replication_sets.items():
        for index, table in enumerate(settings.tables):
            for (site, one), (other_site, other) in combinations(table.owners.items(), 2):
                if not disjoint(one, other):
                    text = (
                        f"{site} and {other_site} may own the same row, and conflict over it: no column is restricted"
                        " to other constants in each (by =, IN, or BETWEEN numbers, joined by AND); restrict one"
                    )
                    yield Finding(("replication_sets", name, "tables", index, "owners", other_site), text)
