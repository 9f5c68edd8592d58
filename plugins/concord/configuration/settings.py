"""Settings of a site, a replicated table, a replication set and a synchronization."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, StrictBool, StrictInt, model_validator

from concord.configuration.brakes import BrakeSettings
from concord.configuration.conflict import ConflictSettings, Resolvers, only_one
from concord.configuration.field import (
    ByName,
    ConnectionId,
    Duration,
    Identifier,
    Key,
    Name,
    PoolName,
    Schedule,
    Settings,
    Table,
)
from concord.configuration.hooks import Hooks
from concord.configuration.identity import IdentitySettings
from concord.configuration.mapping import MappingSettings
from concord.configuration.notify import NotifySettings
from concord.configuration.objective import ObjectiveSettings
from concord.configuration.tracking import TrackingSettings
from concord.configuration.watch import WatchSettings
from concord.jobs.link import SPARK_FROM
from concord.jobs.site import Capture
from concord.rules.brake import Brakes
from concord.rules.policy import Policy
from concord.tables.identity import Identity
from concord.tables.privacy import Treatment
from concord.tables.replication_set import NotOwned, ReplicatedTable, TableName
from concord.tables.row_filter_text import Where

#: Column → what the ledger keeps of it.
PrivateColumns = Annotated[
    Mapping[Identifier, Treatment], AfterValidator(MappingProxyType), PlainSerializer(dict)
]


class SiteSettings(Settings):
    """A database whose rows may be changed by its own users, and the logins that reach it."""

    connection: ConnectionId = Field(
        description="Id of the Airflow connection. Address and password stand there, never in this file."
    )
    reader: ConnectionId | None = Field(
        default=None, description="Connection whose login reads changes. Default: connection."
    )
    applier: ConnectionId | None = Field(
        default=None, description="Connection whose login writes changes. Default: connection."
    )
    installer: ConnectionId | None = Field(
        default=None, description="Connection whose login provisions. Default: connection."
    )
    log_reader: ConnectionId | None = Field(
        default=None,
        description="Connection whose login, with REPLICATION, reads the log of a publisher, or of a site with capture:"
        " log. It can read every table of the server: give it to no other task.",
    )
    capture: Capture = Field(
        default=Capture.TRIGGERS,
        description="How synchronizations find what users of this site change: by triggers on the tables, or in the"
        " database's log (log), where users' statements pay for no trigger. Tables with tracking have neither.",
    )
    priority: StrictInt = Field(default=0, description="The higher site wins a tie; equal ones go by name.")
    max_clock_skew: Duration = Field(
        default=timedelta(seconds=60),
        description="Links refuse to run when this site's clock is further away.",
    )
    insecure: StrictBool = Field(default=False, description="Permits an unencrypted connection.")
    readers: StrictInt = Field(default=2, ge=1, le=32, description="Parallel readers of one cut of the site.")
    pool: PoolName | None = Field(
        default=None,
        description="Airflow pool that links run in which read here; each takes as many of its slots as readers."
        " Default: Airflow's default pool.",
    )

    @property
    def reader_connection(self) -> str:
        return self.reader or self.connection

    @property
    def applier_connection(self) -> str:
        return self.applier or self.connection

    @property
    def installer_connection(self) -> str:
        return self.installer or self.connection

    @property
    def role_connections(self) -> list[str]:
        """Of its installer, reader and applier, in this order, and last of the log's reader where it has one."""
        named = [self.installer_connection, self.reader_connection, self.applier_connection]
        return [*named, self.log_reader] if self.log_reader else named

    @property
    def connections(self) -> frozenset[str]:
        """Every connection id this site names."""
        named = (self.connection, self.reader, self.applier, self.installer, self.log_reader)
        return frozenset(name for name in named if name)


class TableSettings(Settings):
    """One table kept equal."""

    table: Table = Field(
        description="schema.name by PostgreSQL's rules: letters outside quotes fold to lower case."
    )
    key: Key | None = Field(
        default=None, description="Columns that identify a row on every site. Default: the primary key."
    )
    at: ByName[Table] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="The table's name at sites where it differs.",
    )
    columns: Key | None = Field(
        default=None, description="The columns that are replicated; all others stay untouched. Default: all."
    )
    mappings: ByName[MappingSettings] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="How a site keeps the columns otherwise, by site.",
    )
    where: Where | None = Field(
        default=None, description="Row filter: only rows for which it is true are shared. Default: all."
    )
    owners: ByName[Where] = Field(
        default_factory=lambda: MappingProxyType({}),
        description="For each site the rows that it alone should change. A change to another's is counted.",
    )
    not_owned: NotOwned = Field(
        default=NotOwned.COUNT,
        description="A user's change to a row that the site does not own: count lets it travel and counts it; refuse"
        " lets the user's statement fail.",
    )
    resolvers: Resolvers | None = Field(
        default=None,
        description="How a conflict of any type is decided. Default: as the synchronization says.",
    )
    conflict: ConflictSettings | None = Field(
        default=None, description="Instead of resolvers: who wins a conflict, by its type."
    )
    hooks: Hooks
    private: PrivateColumns = Field(
        default_factory=lambda: MappingProxyType({}),
        description="Columns that the conflict ledger keeps hashed or not at all. Default: all are stored.",
    )
    identity: IdentitySettings | None = Field(
        default=None, description="Which numbers each site generates. Default: what the replication set says."
    )
    tracking: TrackingSettings | None = Field(
        default=None, description="Marks kept by the application. Default: a shadow table kept by triggers."
    )
    brakes: BrakeSettings | None = Field(
        default=None, description="When a run is held for approval. Default: what the synchronization says."
    )

    def name_at(self, site: str) -> TableName:
        return self.at.get(site, self.table)

    @model_validator(mode="after")
    def _one_policy(self) -> TableSettings:
        only_one(self.resolvers, self.conflict)
        return self

    @property
    def conflicts(self) -> ConflictSettings | None:
        """The table's own policy, whole; None where the synchronization's holds (S4-064)."""
        return ConflictSettings.short(self.resolvers) if self.resolvers else self.conflict

    def replicated(self, policy: Policy) -> ReplicatedTable:
        """The table as a link carries it."""
        return ReplicatedTable(
            table=self.table,
            at=dict(self.at),
            key=self.key,
            columns=self.columns,
            manipulations={site: mapping.manipulation() for site, mapping in self.mappings.items()},
            where=self.where,
            owners=dict(self.owners),
            not_owned=self.not_owned,
            policy=policy,
            tracking=self.tracking.marks() if self.tracking else None,
            private=dict(self.private),
            hooks={site: each.hook for site, each in self.hooks.items()},
        )


class ReplicationSetSettings(Settings):
    """The tables kept equal between the sites of a synchronization."""

    tables: tuple[TableSettings, ...] = Field(description="None, written as [], is for `procedures` alone.")
    identity: IdentitySettings | None = Field(default=None, description="Each site's numbers. Default: any.")

    def identity_of(self, table: TableSettings) -> Identity | None:
        """The table's own setting, else the set's."""
        settings = table.identity or self.identity
        return None if settings is None else settings.identity()


class SynchronizationSettings(Settings):
    """A pair of related links between two sites."""

    replication_set: Name = Field(description="Which tables: a name under replication_sets.")
    source: Name = Field(description="The site that the forward link reads: a name under sites.")
    target: Name = Field(description="The site that the forward link writes: a name under sites.")
    schedule: Schedule | None = Field(
        default=None, description="Five cron fields in UTC, or @hourly and the like. Default: on demand only."
    )
    watch: WatchSettings | None = Field(
        default=None,
        description="Also start a run soon after a user's commit, at either site. Default: by the schedule alone.",
    )
    resolvers: Resolvers | None = Field(
        default=None,
        description="Asked in order until one decides a conflict, of any type. Default: latest_timestamp.",
    )
    conflict: ConflictSettings | None = Field(
        default=None, description="Instead of resolvers: who wins a conflict, by its type."
    )
    tombstone_retention: Duration = Field(
        default=timedelta(days=14),
        description="Least age of a tombstone that every link has passed before it is deleted.",
    )
    max_quarantined: StrictInt = Field(
        default=1000,
        ge=0,
        description="Rows that a site may refuse in one run of a link; they wait there. More stop the link; 0: none.",
    )
    spark_from: StrictInt = Field(
        default=SPARK_FROM,
        ge=0,
        description="Changed rows of a run from which Spark carries them; fewer of unmapped tables are carried by the"
        " driver. 0: Spark carries all.",
    )
    notify: NotifySettings | None = Field(
        default=None, description="Whom to tell of a run with many conflicts. Default: nobody."
    )
    objective: ObjectiveSettings | None = Field(
        default=None, description="How late, and how slow, each of its links may be. Default: as it comes."
    )
    brakes: BrakeSettings = Field(
        default=BrakeSettings(), description="When a run is held for approval, for tables that do not say."
    )

    def brakes_of(self, table: TableSettings) -> Brakes:
        """The table's own settings, else the synchronization's, else the defaults."""
        shared = self.brakes.over(Brakes())
        return shared if table.brakes is None else table.brakes.over(shared)

    @property
    def sites(self) -> tuple[str, str]:
        return (self.source, self.target)

    @model_validator(mode="after")
    def _one_policy(self) -> SynchronizationSettings:
        only_one(self.resolvers, self.conflict)
        return self

    @property
    def conflicts(self) -> ConflictSettings:
        """The policy of the tables that have none of their own."""
        given = ConflictSettings.short(self.resolvers) if self.resolvers else self.conflict
        return given or ConflictSettings()

    @property
    def is_self_link(self) -> bool:
        """From a site to itself: harmless, and without effect (S4-175)."""
        return self.source == self.target
