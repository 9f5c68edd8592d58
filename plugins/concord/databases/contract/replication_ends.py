"""The questions of a replication's run to its publisher and its subscriber, whichever databases they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from concord.databases.contract.compared_replica import ComparedLog, ComparedReplica
from concord.databases.contract.consumed import ConsumedTable, ConsumerMemory, Whole
from concord.databases.contract.entry_decision import FOR_A_PERSON, Decision, Hold, Keys
from concord.databases.contract.last_entry import LastEntry
from concord.databases.contract.logged_structures import NOTHING_LOGGED, LoggedStructures
from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.databases.contract.watched_log import LogWatch, WatchedLog
from concord.jobs.kept_history import KeptHistory
from concord.jobs.replication import EntryOperation, ReplicationJob
from concord.jobs.site import Credentials, SiteAccess
from concord.rules.hook_function import AsksHook
from concord.tables.row_mapping import Mapper
from concord.values.identifier import TableName


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a publisher's log ends."""

    number: int  #: no entry committed until then exceeds it
    at: datetime  #: by the publisher's clock


class Batch(Protocol):
    """Operations in commit order, as the subscriber stages them."""

    @property
    def operations(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def level(self) -> int | None:
        """The number of its last whole entry; None where it has none."""

    @property
    def largest(self) -> int:
        """Operations of its largest entry."""

    @property
    def committed_at(self) -> datetime | None:
        """When its first whole entry was committed."""


class LogStream(Protocol):
    """The publisher's log from one level on."""

    def batches(self, end: int) -> Iterator[Batch]:
        """Whole entries, until the log is read up to `end`. Only an entry larger than a batch comes in several."""

    def up_to(self, level: int) -> Iterator[Batch]:
        """The entries up to the level, and none after it. Nothing more is read from this stream."""

    def coming(self) -> Iterator[Batch | None]:
        """The same without an end, as users commit. None when nothing has come for a moment."""

    @property
    def passed(self) -> int:
        """Where `coming` gives None: no entry up to this number is still to come."""

    def confirm(self, level: int) -> None:
        """The subscriber has everything up to `level` on disk: the publisher need not keep it."""


class Begun(Protocol):
    """A log that begins anew."""

    @property
    def level(self) -> int:
        """It begins after it."""

    @property
    def snapshot(self) -> str:
        """The tables at that level."""


class PublisherEnd(ConsumerMemory, Protocol):
    """Where transactions come from. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def inspect_published(self, logged: LoggedStructures = NOTHING_LOGGED) -> Any:
        """The published tables as they are now, but for those that the log has otherwise.

        Where the job copies some tables alone, streams have no operations of these.

        Raises NotProvisioned, IdentityChanged or StructureChanged.
        """

    def logged_structures(self, published: Any) -> LoggedStructures:
        """Of the tables of which operations wait: the columns of the first one. Nothing is confirmed."""

    def end_of_log(self) -> LogEnd:
        """It ends here now."""

    def refuse_lost(self, level: int, last_entry: Callable[[], LastEntry | None]) -> None:
        """Raises HistoryLost where the log no longer begins at the level, has not reached it, or lacks the last entry,
        which is queried."""

    def stream(self, level: int, published: Any) -> AbstractContextManager[LogStream]:
        """Raises WriteContended while an older run reads."""

    def unconfirmed(self) -> int | None:
        """Bytes of log that the subscriber has not confirmed; None where none is kept for it."""

    def confirmed(self) -> int | None:
        """Up to which number the log need not be kept; None where none is kept."""

    def entries(self, level: int, published: Any, end: int) -> Generator[Whole]:
        """Whole entries after `level` up to `end`, for whoever is no subscriber; nothing is confirmed."""

    def consumed_tables(self, published: Any) -> Sequence[ConsumedTable]:
        """Their columns, as Spark knows them."""

    def forget_delivered(self) -> None:
        """Nothing waits, and no run is on: what was kept for the subscriber beside the log may go."""

    def drop_log(self) -> None:
        """No log is kept for this replication from here on."""

    def begin_anew(self) -> AbstractContextManager[Begun]:
        """A snapshot while the context is open. The log is kept from there on; one that was kept already still is."""

    def copies(self, published: Any, snapshot: str) -> Copies:
        """The rows in the snapshot, as the subscriber takes them in."""

    def compared(self, published: Any, wait: Callable[[int], None]) -> AbstractContextManager[ComparedLog]:
        """A log of a comparison's own, beside the one that runs read. `wait` returns once the subscriber has come to a
        level: then it has all that was committed before the log begins."""

    def replica(self, published: Any, snapshot: str) -> ComparedReplica:
        """The tables in that snapshot, for a comparison."""


#: By table: its rows, block by block.
Copies = Mapping[str, Callable[[], Iterator[bytes]]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The effect of one batch at the subscriber."""

    entries: int
    effects: Mapping[str, Mapping[str, int]]  #: by table, of `jobs.replication_report.EFFECTS`
    set_aside: int | None = None  #: operations of the entry that the job sets aside, once it was met

    def and_then(self, later: Replayed) -> Replayed:
        """The effects of both."""
        counted = {
            table: dict(Counter(self.effects.get(table, {})) + Counter(later.effects.get(table, {})))
            for table in {**self.effects, **later.effects}
        }
        aside = self.set_aside if later.set_aside is None else later.set_aside
        return Replayed(self.entries + later.entries, counted, aside)


@dataclass(frozen=True, slots=True)
class Filled:
    """A subscriber's tables after they were copied."""

    rows: Mapping[str, Mapping[str, int]]  #: by table, and by effect (`jobs.replication_report.EFFECTS`)
    own_level: int  #: of the subscriber's own log: users' transactions up to it are not in the copy


class SubscriberEnd(Protocol):
    """Where transactions are replayed. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def inspect_subscribed(self, published: Any) -> object:
        """Do its tables take the publisher's rows? Raises NotProvisioned, IdentityChanged or StructureChanged."""

    def take_epoch(self) -> None:
        """From here on no older run's entry commits. Raises LeaseLost when a newer run was here."""

    def level(self) -> int:
        """The number of the last entry that was replayed. Raises NotInitialized, SubscriberInvalid or HistoryLost.

        The tables that the job copies alone count as not copied from here on, until `initialize` ends.
        """

    def reached(self) -> int:
        """The same for whoever replays nothing, while runs go on. HistoryLost where a table was never copied."""

    def last_entry(self) -> LastEntry | None:
        """The copy where none was replayed since; None where it is not known."""

    def current_at(self) -> datetime | None:
        """The latest moment up to which all of the publisher's entries are known to be here; None: unknown."""

    def invalidate(self, reason: str) -> None:
        """No run goes on before the next `initialize`."""

    def asked_anew(self) -> str | None:
        """Why conflicts that were decided here ask to copy the subscriber anew (S3-21); None: none does."""

    def begin(self) -> None:
        """Make its session ready to replay."""

    def map_by(self, mapper: Mapper) -> None:
        """Rows of tables that the sites keep differently are mapped so; one by one in this process, if nobody says.

        From then on `stage` and `initialize` raise what it raises.
        """

    def hook_by(self, ask_hook: AsksHook | None) -> None:
        """Hooks of tables see their operations through this. From then on `replay` raises HookFailed."""

    def stage(self, batch: Any) -> None:
        """Add a batch to what waits for its replay."""

    def replay(self) -> Replayed:
        """Replay what waits of whole entries, each in a transaction of its own; the last is on disk.

        Raises EntryRefused, WriteContended or LeaseLost: all entries before stand, and nothing of this one.
        """

    def waiting(self, number: int) -> Sequence[EntryOperation] | None:
        """The operations of that entry, if it is staged; without private values."""

    def contested(self, number: int, places: Sequence[int] = ()) -> Sequence[int] | None:
        """The operations of that entry that fail here; `places` of these alone. None where no entry is staged yet.

        Nothing of them stands. Raises ParametersRefused where another entry waits before it, or where no operation at
        such a place fails.
        """

    def keys(self, number: int, operations: Sequence[int] | None = None) -> Keys:
        """Of these operations of the entry, or of all of them. Raises ParametersRefused where it empties a table."""

    def deciding(self, keys: Keys, hold: Hold = FOR_A_PERSON) -> AbstractContextManager[Decision]:
        """Nobody else writes any of the tables while the context is open; at its end all of it is on disk.

        Of a look nothing stands, and users write meanwhile.

        Nothing of it travels back. Raises LeaseLost, WriteContended.
        """

    def interrupt(self) -> None:
        """End what another thread has it do at this moment; nothing of the entry in hand stands."""

    def let_go(self) -> None:
        """Forget the whole entries that are staged, without replaying them."""

    def move_level(self, level: int, at: datetime | None) -> None:
        """The log has no entry for this replication up to `level`, where it ended `at`; on disk. Raises LeaseLost."""

    def begin_at(self, level: int) -> None:
        """The tables are as the publisher's log finds them after this level; on disk. Raises LeaseLost."""

    def initialize(
        self, copies: Copies, level: int, *, replace: bool, about_to_commit: Callable[[], None]
    ) -> Filled:
        """The tables' content and the level, in one transaction; `about_to_commit` is its last step.

        Where the job copies some tables alone, all others were replayed up to the level. Raises SitesDiffer where a
        table has rows and these may not be replaced, and MappingNotReversible.
        """

    def replica(self) -> ComparedReplica:
        """The tables as they are, for a comparison."""

    def mend(self, tables: Collection[str], level: int) -> None:
        """These were found equal after this level: whatever a person skipped of them up to it differs no more."""


class ForgetVersions(Protocol):
    """Deletes old versions of a history, or only counts them."""

    def __call__(
        self, site: SiteAccess, name: TableName, history: KeptHistory, now: datetime, *, dry_run: bool
    ) -> int:
        """How many another version had followed by `now` for as long as they are kept. Raises a ConcordError."""


@dataclass(frozen=True, slots=True)
class ReplicationDialect:
    """How a database opens the two ends of a replication."""

    publisher: Callable[[ReplicationJob], PublisherEnd]
    subscriber: Callable[[ReplicationJob], SubscriberEnd]
    level: Callable[[ReplicationJob], ReplayedLevel | None]  #: None: never initialized
    kept_log: Callable[[ReplicationJob, int], KeptLog | None]  #: since the level; None: it is gone
    watch: Callable[[Credentials, WatchedLog], LogWatch]  #: by the log's own login
    forget_versions: ForgetVersions
