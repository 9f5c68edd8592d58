"""A transactional replication: its definition and its job (S0-08 to S0-14, S4-111 to S4-113)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from math import inf
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator

from concord.jobs.kept_history import KeptHistory
from concord.jobs.largest import Largest
from concord.jobs.link import Direction, link_name
from concord.jobs.max_delta import MaxDelta
from concord.jobs.queued import Precedence, QueuedConflicts, Scope
from concord.jobs.site import Capture, Credentials, SiteAccess
from concord.jobs.throttle import Throttle
from concord.tables.replication_set import ReplicatedTable, TableName


class Conversions(StrEnum):
    """The fate of an operation that does not find the subscriber's row as the publisher's was (S0-48)."""

    COUNT = (
        "count"  #: the row is brought to the publisher's; counted where a row is missing, or there already
    )
    COMPARE = "compare"  #: the same, and counted where the row has other values than the publisher's had
    REFUSE = "refuse"  #: the replication stops at that entry in all of these cases


#: Where a report names a table.
CALLS = "calls"


class Updates(StrEnum):
    """The sites at which users write (S0-01, S2-06)."""

    PUBLISHER = "publisher"  #: one way: the subscriber is read
    BOTH = "both"  #: each site replays the other's transactions; a conflict stops both directions
    QUEUED = "queued"  #: the subscriber's wait until they are heard; a conflict is decided by policy (S2-04)


def replication_name(name: str) -> str:
    """The name that lease, epoch and status give it. No synchronization can have it: `/` is none of its letters."""
    return f"replication/{name}"


def of_replication(synchronization: str) -> bool:
    """Does this name stand for a replication?"""
    return synchronization.startswith(replication_name(""))


def configured_name(synchronization: str) -> str:
    """As people have written it in the configuration."""
    return synchronization.removeprefix(replication_name(""))


class ReplicationDefinition(BaseModel):
    """Every committed transaction of one site, replayed at another in commit order (S0-01)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    replication_set: str
    publisher: str
    subscriber: str
    tables: tuple[ReplicatedTable, ...]
    conversions: Conversions = Conversions.COUNT
    largest_transaction: Largest = Largest()
    set_based_from: int = 500  #: operations from which on an entry is netted, and replayed by set
    spark_from: int | None = None  #: rows of a table in one batch from which on Spark maps them; None: never
    updates: Updates = Updates.PUBLISHER
    capture: Capture = Capture.LOG
    max_delta: MaxDelta = MaxDelta()
    #: Their calls travel in place of the rows that these change (S2-12).
    procedures: tuple[TableName, ...] = ()
    history: Mapping[str, KeptHistory] = {}  #: by table: the subscriber's keeps every version (S0-49)
    throttle: Throttle | None = None
    conflict: QueuedConflicts = QueuedConflicts()
    version_column: Mapping[str, str] = {}  #: by table: its own column that shows a row's version (S4-147)
    consumers: tuple[str, ...] = ()  #: others that read the same entries (S0-41)
    skip: tuple[str, ...] = ()  #: numbers of errors whose operations are kept, and not replayed (S2-22)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """The configuration says more of it, with the place of each mistake (S4-132, S0-49)."""
        chosen = any(each.manipulations or each.columns or each.where for each in self.tables)
        if self.both_ways and chosen:
            raise ValueError("a replication both ways chooses no rows or columns, and maps none")
        if self.by_triggers and any(each.where for each in self.tables):
            raise ValueError("triggers do not yet choose rows")
        if self.procedures and (self.both_ways or self.by_triggers):
            raise ValueError("calls go one way, and come from the log")
        if self.history and (self.both_ways or self.procedures):
            raise ValueError("a history is kept of rows that come one way")
        return self

    @property
    def scope(self) -> str | None:
        """Of the columns and rows that it carries, to tell them from others; None is all of them."""
        some = (each for each in self.tables if each.columns is not None or each.where is not None)
        chosen = sorted((each.name, sorted(each.columns or ()), each.filter_text) for each in some)
        return hashlib.sha256(repr(chosen).encode()).hexdigest()[:16] if chosen else None

    @property
    def histories(self) -> list[tuple[ReplicatedTable, KeptHistory]]:
        """The tables of which every version is kept."""
        return [(each, self.history[each.name]) for each in self.tables if each.name in self.history]

    @property
    def maps(self) -> bool:
        """Are values of some table other ones at the subscriber (S0-06)?"""
        return any(each.changes_values(self.publisher, self.subscriber) for each in self.tables)

    @property
    def both_ways(self) -> bool:
        """Do users of both sites write?"""
        return self.updates is not Updates.PUBLISHER

    @property
    def copies_tables(self) -> bool:
        """Can some tables be copied without the others? A call that is passed over would lack its other rows."""
        return not self.both_ways and not self.procedures

    def compares(self, table: ReplicatedTable) -> bool:
        """Does a replay compare the table's row with the publisher's row before the operation?

        A history keeps every version of it. A hook may have written other values than the publisher's.
        """
        if self.both_ways:
            return True
        plain = table.name not in self.history and self.subscriber not in table.hooks
        return plain and self.conversions is not Conversions.COUNT

    @property
    def queued(self) -> bool:
        """Are conflicts decided by row versions?"""
        return self.updates is Updates.QUEUED

    @property
    def rejects(self) -> bool:
        """Does the publisher's row stand?"""
        return self.conflict.policy is not Precedence.SUBSCRIBER

    @property
    def reinitializes(self) -> bool:
        """Does a conflict ask to copy the subscriber anew (S3-21)?"""
        return self.queued and self.conflict.policy is Precedence.REINITIALIZE

    @property
    def rejects_whole(self) -> bool:
        """Does all of a transaction fall with one of its rows?"""
        return self.rejects and self.conflict.scope is Scope.TRANSACTION

    @property
    def at_once(self) -> float:
        """Operations that are replayed without a rest; a transaction may have more."""
        return self.throttle.operations_per_second if self.throttle else inf

    @property
    def by_triggers(self) -> bool:
        return self.capture is Capture.TRIGGERS

    def ends(self, direction: Direction) -> tuple[str, str]:
        """The site whose log is read, and the one that replays it."""
        ends = (self.publisher, self.subscriber)
        return ends if direction is Direction.FORWARD else ends[::-1]

    def published_by(self, site: str) -> bool:
        """Are this site's transactions read?"""
        return site == self.publisher or (self.both_ways and site == self.subscriber)

    def replayed_at(self, site: str) -> bool:
        """Does it write this site's tables?"""
        return site == self.subscriber or (self.both_ways and site == self.publisher)


class Aside(StrEnum):
    """A person's decision on an entry that cannot be replayed (S2-22)."""

    SKIP = "skip"  #: none of its operations is replayed
    QUARANTINE = "quarantine"  #: those that fail are not


class SetAside(BaseModel):
    """Which entry is not, or not wholly, replayed; who says so, and why (S4-136)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    how: Aside
    reason: str
    by: str


class EntryOperation(BaseModel):
    """One operation of an entry, for people; without private values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seq: int
    table: str
    operation: str
    key: Mapping[str, Any] | None = None  #: of the row before the operation
    before: Mapping[str, Any] | None = None  #: the whole row before it, where both sites write
    row: Mapping[str, Any] | None = None  #: after it, as far as the publisher sent it
    here: Mapping[str, Any] | None = None  #: the row that it meets at the subscriber now
    error: str | None = None


class ReplicationJob(BaseModel):
    """Everything one run of a replication needs, handed to its driver."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replication: ReplicationDefinition
    transmission: str  #: 32 hexadecimal digits
    epoch: int
    direction: Direction = Direction.FORWARD  #: reverse: the subscriber's are replayed at the publisher
    source: SiteAccess  #: the site whose transactions are read
    target: SiteAccess  #: the site that replays them
    log_reader: Credentials | None = None  #: reads every table of its cluster; None where triggers capture
    set_aside: SetAside | None = None
    approved: tuple[str, ...] = ()  #: the places in the log of large entries that a person let pass
    run_for: float = 3_600.0  #: seconds after which a run of a busy publisher leaves the rest to the next one
    linger: float = 0.0  #: seconds for which a run stays after the last entry, and replays what comes
    initialize: bool = False  #: copy the tables anew, and begin the log there
    replace: bool = False  #: with `initialize`: rows that the subscriber has are deleted first
    copied: frozenset[str] = frozenset()  #: with `initialize`: these tables alone; empty: all

    @property
    def synchronization(self) -> str:
        return replication_name(self.replication.name)

    @property
    def link(self) -> str:
        return link_name(self.synchronization, self.direction)

    @property
    def reads_log(self) -> Credentials:
        """The login for it, where the log is what is read."""
        assert self.log_reader is not None, "a rule of the configuration"
        return self.log_reader

    @property
    def plan_only(self) -> bool:
        """Of a log nothing can be planned: it is read to be replayed."""
        return False
