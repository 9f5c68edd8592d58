"""Settings of a snapshot, and the rules that tie snapshots to each other and to the synchronizations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

from pydantic import Field

from concord.configuration.field import Key, Name, Schedule, Settings, Table, did_you_mean
from concord.configuration.finding import Finding
from concord.jobs.snapshot import SnapshotDefinition, SnapshotKind
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.row_filter_text import Where

#: One table at one site.
Place = tuple[str, TableName]


class SnapshotSettings(Settings):
    """A read-only copy of a query's content at another site."""

    kind: SnapshotKind = Field(
        description="incremental: one table, what changed since; non_incremental: a table or view, all of it."
    )
    source: Name = Field(description="The site that is read: a name under sites.")
    target: Name = Field(description="The site that holds the copy: a name under sites.")
    relation: Table = Field(
        alias="from", description="schema.name of the source's table, or of a view (non_incremental only)."
    )
    columns: Key | None = Field(
        default=None, description="Columns of the copy; an incremental one adds the key. Default: all."
    )
    where: Where | None = Field(default=None, description="Which rows: a condition on the row's own columns.")
    table: Table = Field(description="schema.name of the copy; `provision` creates it where it is missing.")
    schedule: Schedule | None = Field(
        default=None, description="Five cron fields in UTC, or @hourly and the like. Default: on demand only."
    )

    def definition(self, name: str, tracked: ReplicatedTable | None) -> SnapshotDefinition:
        """The snapshot as a refresh carries it."""
        return SnapshotDefinition(
            name=name,
            kind=self.kind,
            source=self.source,
            target=self.target,
            relation=self.relation,
            columns=self.columns,
            where=self.where,
            table=self.table,
            tracked=tracked,
        )


def captured_for_snapshots(site: str, relation: TableName) -> ReplicatedTable:
    """A table that is captured for snapshots alone. Its name names the site: elsewhere another may be called
    alike."""
    name = TableName(schema_name=relation.schema_name, name=f"{relation.name}@{site}")
    return ReplicatedTable(table=name, at={site: relation}, captured_only=True)


def snapshot_rules(
    snapshots: Mapping[str, SnapshotSettings],
    sites: Collection[str],
    replicated: Mapping[Place, str],
) -> Iterator[Finding]:
    """Every mistake between snapshots, sites and replicated tables.

    `replicated` holds the places of tables that synchronizations carry, and what each is called in its set.
    """
    for name, snapshot in snapshots.items():
        yield from _own_rules(name, snapshot, sites)
        if (snapshot.target, snapshot.table) in replicated:
            text = f"is a replicated table at '{snapshot.target}'; a snapshot needs a table of its own"
            yield Finding(("snapshots", name, "table"), text)
    for (first, one), (second, other) in combinations(snapshots.items(), 2):
        if (one.target, one.table) == (other.target, other.table):
            text = f"is the table of the snapshot '{first}' already; give each its own"
            yield Finding(("snapshots", second, "table"), text)
    yield from _loops(snapshots)


def _own_rules(name: str, snapshot: SnapshotSettings, sites: Collection[str]) -> Iterator[Finding]:
    for key, site in (("source", snapshot.source), ("target", snapshot.target)):
        if site not in sites:
            text = f"unknown site '{site}'; {did_you_mean(site, sites)}"
            yield Finding(("snapshots", name, key), text)
    if snapshot.source == snapshot.target:
        text = "source and target are the same site; a materialized view does that without Concord"
        yield Finding(("snapshots", name, "target"), text)


def _loops(snapshots: Mapping[str, SnapshotSettings]) -> Iterator[Finding]:
    """A chain of snapshots is allowed; one that comes back to where it began feeds on itself."""
    comes_from: dict[Place, Place] = {
        (each.target, each.table): (each.source, each.relation) for each in snapshots.values()
    }
    for name, snapshot in snapshots.items():
        place, seen = (snapshot.source, snapshot.relation), set[Place]()
        while place in comes_from and place not in seen:
            seen.add(place)
            place = comes_from[place]
        if (snapshot.target, snapshot.table) in seen:
            text = "is, through other snapshots, a copy of this snapshot's own table; break the loop"
            yield Finding(("snapshots", name, "from"), text)
