"""Settings of a transactional replication: whose transactions are replayed where (S0-01)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, StrictInt

from concord.configuration.field import (
    Duration,
    ErrorNumber,
    Identifier,
    Name,
    Schedule,
    Settings,
    Size,
    Table,
)
from concord.configuration.history import HistorySettings
from concord.configuration.objective import ObjectiveSettings
from concord.configuration.replication_start import ContinuousSettings, ReplicationWatchSettings
from concord.configuration.settings import ReplicationSetSettings, TableSettings
from concord.jobs.largest import Largest
from concord.jobs.link import Direction
from concord.jobs.max_delta import MaxDelta
from concord.jobs.queued import QueuedConflicts
from concord.jobs.replication import Conversions, ReplicationDefinition, Updates
from concord.jobs.site import Capture
from concord.jobs.throttle import Throttle
from concord.rules.policy import Policy
from concord.tables.identity import Identity
from concord.tables.replication_set import ReplicatedTable, TableName


class MaxDeltaSettings(Settings):
    """How far the subscriber may be behind; beyond it the log is no longer kept for it."""

    bytes: Size | None = Field(
        default=None,
        description="Of the publisher's log since the level, those of other tables included. Default: no limit.",
    )
    age: Duration | None = Field(
        default=None, description="Of the oldest transaction that waits. Default: no limit."
    )


class ReplicationSettings(Settings):
    """Every committed transaction of one site, replayed at another in commit order."""

    replication_set: Name = Field(description="Which tables: a name under replication_sets.")
    publisher: Name = Field(
        description="The site whose transactions are read: a name under sites; with a log_reader where capture is log."
    )
    subscriber: Name = Field(description="The site where its transactions are replayed: a name under sites.")
    updates: Updates = Field(
        default=Updates.PUBLISHER,
        description="The sites at which users write: publisher; both, where a conflict stops the replication; or"
        " queued, where it is decided.",
    )
    capture: Capture = Field(
        default=Capture.LOG,
        description="log reads the publisher's own log; triggers fill a table at the publisher, where its log cannot be"
        " had.",
    )
    schedule: Schedule | None = Field(
        default=None, description="Five cron fields in UTC, or @hourly and the like. Default: on demand only."
    )
    continuous: ContinuousSettings | None = Field(
        default=None, description="Instead of a schedule: one run after the other."
    )
    watch: ReplicationWatchSettings | None = Field(
        default=None, description="Beside a schedule, or instead: a transaction starts a run."
    )
    conversions: Conversions = Field(
        default=Conversions.COUNT,
        description="Of an insert that finds its row, or an update that does not: count brings the row to the"
        " publisher's; compare does so and counts rows that were altered at the subscriber, too; refuse stops at each"
        " of them. compare and refuse need the publisher's rows as they were (REPLICA IDENTITY FULL).",
    )
    largest_transaction: Largest = Field(
        default=Largest(),
        description="Operations, and bytes of log, beyond which a transaction waits for `approve`. Default: no limit.",
    )
    set_based_from: StrictInt = Field(
        default=500,
        ge=1,
        description="Operations of a transaction from which on it is netted per key, and replayed by set. Default:"
        " 500.",
    )
    spark_from: StrictInt | None = Field(
        default=None,
        ge=0,
        description="Rows of a mapped table in one batch from which on Spark maps them; the driver maps fewer. Default:"
        " the driver maps all. 0: Spark maps all.",
    )
    procedures: tuple[Table, ...] = Field(
        default=(),
        description="Calls of these travel in place of the rows that they change: schema.name. Default: none.",
    )
    history: Mapping[Table, HistorySettings] = Field(
        default_factory=dict,
        description="By table: the subscriber keeps every version of its rows, in a table of another name. Default:"
        " none.",
    )
    throttle: Throttle | None = Field(
        default=None, description="How fast transactions are replayed, and in which hours. Default: no limit."
    )
    conflict: QueuedConflicts | None = Field(
        default=None, description="With updates: queued: which row stands, and what falls with the other."
    )
    version_column: Mapping[Table, Identifier] = Field(
        default_factory=dict,
        description="With updates: queued, by table: a column of its own in which each update leaves another UUID.",
    )
    consumers: tuple[Name, ...] = Field(
        default=(),
        description="Names of others that read the same transactions, each at its own level. Default: none.",
    )
    max_delta: MaxDeltaSettings = Field(
        default=MaxDeltaSettings(),
        description="How far the subscriber may be behind. Beyond it the replication must be initialized again.",
    )
    skip: tuple[ErrorNumber, ...] = Field(
        default=(),
        description="Numbers of errors (SQLSTATE) with which an operation may fail: it is kept, the others of its"
        " transaction are replayed, and the replication goes on. Default: none, it stops.",
    )
    objective: ObjectiveSettings | None = Field(
        default=None, description="How late, and how slow, each direction may be. Default: as it comes."
    )

    @property
    def sites(self) -> tuple[str, str]:
        return (self.publisher, self.subscriber)

    @property
    def both_ways(self) -> bool:
        """Do users of both sites write?"""
        return self.updates is not Updates.PUBLISHER

    @property
    def queued(self) -> bool:
        return self.updates is Updates.QUEUED

    @property
    def directions(self) -> tuple[tuple[str, str], ...]:
        """The ways of transactions, from site to site."""
        forward = (self.publisher, self.subscriber)
        return (forward, forward[::-1]) if self.both_ways else (forward,)

    @property
    def ways(self) -> list[Direction]:
        """The same by their names."""
        return list(Direction)[: len(self.directions)]

    @property
    def stays(self) -> dict[str, Any]:
        """How long a run of its DAG does, as its job says it."""
        if self.continuous is not None:
            run_for = self.continuous.run_for.total_seconds()
            return {"run_for": run_for, "linger": run_for}
        if self.watch is None or self.both_ways:  # the way back would wait for it
            return {}
        return {"linger": self.watch.linger.total_seconds()}

    def name_at(self, table: TableSettings, site: str) -> TableName:
        """A history stands at the subscriber in its table's place."""
        kept = self.history.get(table.table) if site == self.subscriber else None
        return table.name_at(site) if kept is None else kept.table

    def _placed(self, table: TableSettings, identity: Identity | None) -> ReplicatedTable:
        made = table.replicated(Policy()).sharing(identity)
        if table.table not in self.history:
            return made
        place = self.name_at(table, self.subscriber)
        return made.model_copy(update={"at": {**made.at, self.subscriber: place}})

    def definition(self, name: str, wanted: ReplicationSetSettings) -> ReplicationDefinition:
        """The replication as a run carries it."""
        return ReplicationDefinition(
            name=name,
            replication_set=self.replication_set,
            publisher=self.publisher,
            subscriber=self.subscriber,
            tables=tuple(
                self._placed(each, wanted.identity_of(each) if self.both_ways else None)
                for each in wanted.tables
            ),
            conversions=self.conversions,
            set_based_from=self.set_based_from,
            spark_from=self.spark_from,
            largest_transaction=self.largest_transaction,
            updates=self.updates,
            capture=self.capture,
            procedures=self.procedures,
            consumers=self.consumers,
            history={str(table): each.kept for table, each in self.history.items()},
            throttle=self.throttle,
            conflict=self.conflict or QueuedConflicts(),
            version_column={str(table): column for table, column in self.version_column.items()},
            skip=self.skip,
            max_delta=MaxDelta(bytes=self.max_delta.bytes, age=self.max_delta.age),
        )
