"""The dialect contract: what a link asks of a database, whichever it is. One package per database keeps it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

from concord.databases.contract.capabilities import Lacking
from concord.databases.contract.reading import Reading, Relay
from concord.jobs.link import LinkJob, TableReport
from concord.jobs.site import SiteAccess
from concord.rules.brake import Brakes, Effect
from concord.rules.policy import Policy
from concord.tables.manipulation import Manipulation
from concord.tables.replication_set import ReplicatedTable
from concord.tables.row_filter import RowFilter
from concord.tables.structure import Structure
from concord.values.text_form import TextForm
from concord.versions.position import Session
from concord.versions.row_version import RowVersion

if TYPE_CHECKING:
    from concord.databases.contract.arrivals import Arrivals
    from concord.databases.contract.compared_site import ComparedSite
    from concord.databases.contract.initialization import Initialization
    from concord.databases.contract.ledger import Ledger
    from concord.databases.contract.logins import Wanted
    from concord.databases.contract.snapshot_ends import SnapshotDialect
    from concord.databases.contract.status import Status
    from concord.databases.contract.surveyed_site import Provisioning
    from concord.databases.contract.upkeep import Upkeep
    from concord.databases.contract.waiting import Waiting
    from concord.jobs.initialization import InitializationJob

S_co = TypeVar("S_co", covariant=True)

#: Called with the name of each step before it is taken: progress for people, a place to stop for kill tests.
Progress = Callable[[str], None]


#: The row version as it travels beside the row: name → Spark type. The vector travels as JSON text.
VERSION_TYPES = {
    "origin": "string",
    "changed_at": "bigint",
    "derived": "int",
    "vector": "string",
    "deleted": "boolean",
    "born": "boolean",
    "out_of_scope": "boolean",  # the row has left the filter: the target keeps its version, not its content (rule 9)
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A consistent cut of a site: what it is called as a position, and how other sessions share it."""

    position: str
    exported: str


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A site as it knows itself (`concord.site`)."""

    name: str
    origin: str
    identity: str
    heartbeat: int
    stamp_floor: int  #: µs; every new stamp is greater


@dataclass(frozen=True, slots=True)
class LinkState:
    """One link at one end: tables with a proven common history, and its sessions, newest first."""

    initialized: Mapping[str, Any]
    history: tuple[Session, ...]
    floor: str | None = (
        None  #: the session up to which tombstones are gone; none older may be resumed (rule 10)
    )

    forced_at: datetime | None = None  #: when a person had tombstones removed that the link had not sent
    written_at: datetime | None = None  #: when its newest session was written here

    def below_floor(self, session: Session) -> bool:
        """Is `session` older than the floor? A session that the history forgot is older than all it holds."""
        if self.forced_at is not None:
            return True
        ids = [known.id for known in self.history]
        return self.floor in ids and ids.index(session.id) > ids.index(self.floor)

    def uninitialized(self, tables: Sequence[str]) -> list[str]:
        return [table for table in tables if table not in self.initialized]

    def otherwise_filtered(self, tables: Sequence[ReplicatedTable]) -> list[str]:
        """Tables whose common history was proven under another row filter (rule 9)."""
        known = {name: record.get("filter") for name, record in self.initialized.items()}
        return [each.name for each in tables if each.name in known and known[each.name] != each.filter_text]


class Memory(NamedTuple):
    """An end's record of some links, in their order, and of itself."""

    states: Sequence[LinkState]
    site: SiteRow


class Job(Protocol):
    """The facts of every job between two sites: its name, and its two sites."""

    @property
    def synchronization(self) -> str: ...

    @property
    def link(self) -> str: ...

    @property
    def transmission(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def source(self) -> SiteAccess: ...

    @property
    def target(self) -> SiteAccess: ...


class Shape(Protocol):
    """How the rows of one table travel."""

    @property
    def name(self) -> str:
        """The table's name in the replication set."""

    @property
    def site(self) -> str:
        """Where the table stands."""

    @property
    def names(self) -> tuple[str, ...]:
        """The site's own columns that travel."""

    @property
    def key_names(self) -> tuple[str, ...]: ...

    @property
    def aliases(self) -> tuple[str, ...]:
        """Their names on the way, in the same order."""

    @property
    def where(self) -> RowFilter | None:
        """The rows that are shared, by canonical columns; None is all."""

    @property
    def spark_types(self) -> tuple[str, ...]: ...

    @property
    def text_forms(self) -> tuple[TextForm | None, ...]:
        """How each reads as text; None where texts of its type cannot be judged."""

    @property
    def manipulation(self) -> Manipulation:
        """Their types in canonical form."""

    @property
    def key_aliases(self) -> tuple[str, ...]: ...

    @property
    def relayed(self) -> Self:
        """The same where its rows go from database to database, and through no Arrow."""

    @property
    def base_types(self) -> Mapping[str, str]:
        """The columns that travel beside row and version where the table keeps before-images: name → Spark type."""

    @property
    def staged_beside(self) -> tuple[str, ...]:
        """That, and the new row of a decision of somebody else's function, as they are staged."""

    @property
    def policy(self) -> Policy:
        """How a conflict is decided."""

    @property
    def private(self) -> frozenset[str]:
        """The site's own columns of which no message tells a value."""

    @property
    def key_is_private(self) -> bool:
        """No message tells which row it is about."""

    @property
    def comparable_aliases(self) -> tuple[str, ...] | None:
        """Those by which Spark can tell whether both sites did the same thing to a key; None where it cannot."""

    @property
    def compared(self) -> Mapping[str, str]:
        """Of the canonical columns that a resolver must see, what they are called on the way."""

    @property
    def structure(self) -> Structure:
        """The canonical columns, comparable between sites."""

    def beside(self, other: Any) -> Shape:
        """The same, read so that rows that are equal as far as both sites can hold them read alike."""


class Staged(Protocol):
    """Rows of one table that executors wrote for the driver's transaction."""

    @property
    def shape(self) -> Shape: ...

    @property
    def relation(self) -> str: ...

    @property
    def rows(self) -> int: ...

    @property
    def types(self) -> Mapping[str, str]:
        """The staged columns of a row, by the names they travel under: the database's own types."""

    def believing(self, attempts: Sequence[int], rows: int) -> Staged:
        """The same place, counting only what these task attempts wrote (F57)."""


@dataclass(frozen=True, slots=True)
class Rebounding:
    """A row that was rewritten run after run, and the versions that meet now."""

    key: tuple[str, ...]  #: canonical
    arriving: RowVersion  #: without its vector, both
    present: RowVersion

    @property
    def dots(self) -> frozenset[object]:
        """The two versions, in no order."""
        return frozenset({self.arriving.dot, self.present.dot})

    def __str__(self) -> str:
        """`capetown#1/1772366400000000/0 over london#1/1772366300000000/0`: the key may be private."""
        arriving, present = ("/".join(map(str, version.dot)) for version in (self.arriving, self.present))
        return f"{arriving} over {present}"


@dataclass(frozen=True, slots=True)
class Survey(Generic[S_co]):
    """The changes of the tables of one end since they were provisioned."""

    shapes: Mapping[str, S_co]  #: those that exist, by name
    altered: Mapping[str, Sequence[str]]  #: what is wrong with a table, each one line
    parents: Mapping[str, Collection[str]]  #: by foreign key, inside of the replication set
    clock_ahead: float  #: s


class End(Protocol):
    """The part that source and target have in common. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def inspect(self, tables: Sequence[ReplicatedTable]) -> tuple[Sequence[Any], float]:
        """The shapes of `tables` in their order, and how far the site's clock is ahead of ours (s)."""

    def survey(self, tables: Sequence[ReplicatedTable]) -> Survey[Any]:
        """The change of each of `tables` at this end; an altered one is no error here."""

    def site(self) -> SiteRow:
        """The site as it knows itself now."""

    def fence(self) -> None:
        """Take the job's epoch at this end. Raises LeaseLost when a newer run was here."""

    def state(self, link: str) -> LinkState:
        """This end's record of a link. Raises NotInitialized."""

    def memory(self, *links: str) -> Memory:
        """The same of several links, and then the site as it knows itself."""

    def fenced_memory(self, *links: str) -> Memory:
        """The same, once the job's epoch is taken. Raises LeaseLost or NotInitialized."""

    def register(self, shapes: Sequence[Any], since: Mapping[str, str]) -> dict[str, int]:
        """Take up what the application has marked as changed on the rows themselves, under the fence; rows per
        table of that kind. `since`: where the link that sends from here goes on.
        Raises LeaseLost, WriteContended or NotInitialized."""

    def count_arrived(
        self, shapes: Sequence[Any], since: Mapping[str, str], excluded: str | None
    ) -> dict[str, int]:
        """Rows per table that arrived after the position, in one round trip."""


class SourceEnd(End, Protocol):
    """Where changes come from."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """One consistent cut, shared by all readers for as long as it is open."""

    def beat(self, position: str | None = None) -> int:
        """A durable write after the snapshot; returns the new heartbeat. Rows that stand at `position`, or before,
        are on their way to the target of a link."""

    def count_not_owned(self, shapes: Sequence[Any], since: Mapping[str, str]) -> dict[str, int]:
        """Rows per table with owners that this site changed although they are another's."""

    def readers(
        self, shape: Any, since: str, excluded: str | None, count: int, snapshot: Snapshot
    ) -> Reading:
        """How executors read the `count` changes of one table."""

    def without_conflict(self, table: str, found: Sequence[Rebounding]) -> list[Rebounding]:
        """Those of the table's rows of which no conflict between the two versions was decided here."""

    def altered_since(self, shapes: Sequence[Any]) -> dict[str, str]:
        """The tables that are not what they were when these shapes were taken, each with what to say of it."""

    def remember(self, state: LinkState, session: Session) -> None:
        """Keep the session at the source, after the target's commit."""


class TargetEnd(End, Protocol):
    """Where changes go."""

    def candidates(self, shape: Any, since: str, excluded: str | None, met: Sequence[str] = ()) -> Reading:
        """Key and version of the rows that could be in conflict; `met`: canonical keys, as JSON, of rows that are."""

    def create_staging(self, shape: Any, ordinal: int) -> Staged: ...

    def staging_login(self) -> str: ...

    def effect(self, staged: Any, brakes: Brakes, most: Effect) -> Effect:
        """The effect of the staged rows on the present ones; nothing is written."""

    def waiting(self, shapes: Sequence[Any], first: int) -> Sequence[Staged]:
        """A place for the rows of each table that wait here for the link, numbered from `first`; the write fills
        it."""

    def write(
        self,
        staged: Sequence[Any],
        state: LinkState,
        session: Session | None,
        progress: Progress,
        released: Collection[str] = (),
        asks: bool = True,
    ) -> dict[str, TableReport]:
        """The one guarded transaction. Returns rows per outcome of every staged table.

        Without a session it moves no position. Raises RowsOscillate but for the `released` tables. Raises
        DecideAgain where somebody else's function was not shown the present rows, unless it is not asked again
        (`asks`).
        """

    def drop_staging(self) -> None:
        """Remove everything that this transmission staged."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of database. In the place of a member that it need not offer it may have `lacks(...)`."""

    name: str  #: as people call it
    source: Callable[[LinkJob], SourceEnd]
    target: Callable[[LinkJob], TargetEnd]
    relay: Callable[[], Relay]  #: between two databases of this kind; tasks bring it along by its name
    between: Callable[[Any, Any], Relay]  #: two open ends, which serve it while the source holds its snapshot
    cancel: Callable[
        [], None
    ]  #: end what this process's sessions do at this moment; callable by a signal's handler
    compared: Callable[[LinkJob], ComparedSite]
    initialization: Callable[[InitializationJob], Initialization]
    provisioning: Provisioning
    status: Status
    ledger: Ledger
    waiting: Waiting
    upkeep: Upkeep
    snapshots: SnapshotDialect
    arrivals: Arrivals
    logins: Callable[[Wanted], str]  #: the script that makes them, for a superuser to run once

    def offers(self, member: str) -> bool:
        """Has it the member, of one of its parts behind a dot?"""
        return not isinstance(attrgetter(member)(self), Lacking)
