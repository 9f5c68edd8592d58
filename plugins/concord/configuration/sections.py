"""The parts of a configuration that are valid one by one, before the rules that tie them together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from concord.configuration.replication import ReplicationSettings
from concord.configuration.retention import Retention
from concord.configuration.settings import (
    ReplicationSetSettings,
    SiteSettings,
    SynchronizationSettings,
    TableSettings,
)
from concord.configuration.snapshot import Place, SnapshotSettings

Synchronization = tuple[str, SynchronizationSettings]


@dataclass(frozen=True, slots=True)
class Sections:
    """The valid parts of a configuration, and the names written in it, those of invalid parts included."""

    sites: Mapping[str, SiteSettings]
    replication_sets: Mapping[str, ReplicationSetSettings]
    synchronizations: Mapping[str, SynchronizationSettings]
    site_names: Collection[str]
    set_names: Collection[str]
    #: False where a synchronization is missing here because it is invalid.
    complete: bool = True
    snapshots: Mapping[str, SnapshotSettings] = field(default_factory=dict)
    replications: Mapping[str, ReplicationSettings] = field(default_factory=dict)
    retention: Retention | None = None  #: None where it is invalid

    def resolved(self) -> list[Synchronization]:
        """The synchronizations whose sites and replication set exist; those from a site to itself do nothing."""
        return [(name, pair) for name, pair in self._known() if not pair.is_self_link]

    def self_links(self) -> list[Synchronization]:
        """The synchronizations from a site to itself."""
        return [(name, pair) for name, pair in self._known() if pair.is_self_link]

    def _known(self) -> Iterator[Synchronization]:
        for name, pair in self.synchronizations.items():
            if pair.replication_set in self.set_names and set(pair.sites) <= set(self.site_names):
                yield name, pair

    def tables(self, pair: SynchronizationSettings) -> tuple[TableSettings, ...]:
        """The tables of a synchronization; none where its replication set is invalid."""
        settings = self.replication_sets.get(pair.replication_set)
        return settings.tables if settings else ()

    def replicated(self) -> dict[Place, str]:
        """Where the synchronizations' tables are, and what each is called in its set."""
        return {
            (site, table.name_at(site)): str(table.table)
            for _, pair in self.resolved()
            for table in self.tables(pair)
            for site in pair.sites
        }
