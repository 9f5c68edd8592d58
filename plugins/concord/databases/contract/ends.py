"""The two ends of a link: what it asks of its source and of its target, whichever databases they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from concord.databases.contract.memory import LinkState, Memory, SiteRow
from concord.databases.contract.questions import Answer, Question
from concord.databases.contract.reading import Reading
from concord.databases.contract.rows import Rebounding, Staged
from concord.jobs.link import TableReport
from concord.jobs.site import SiteAccess
from concord.rules.brake import Brakes, Effect
from concord.rules.hook_function import AsksHook
from concord.tables.replication_set import ReplicatedTable
from concord.versions.position import Session

S_co = TypeVar("S_co", covariant=True)

#: Called with the name of each step before it is taken: progress for people, a place to stop for kill tests.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cut:
    """A consistent cut of a site: what it is called as a position, and how other connections share it."""

    position: str
    exported: str


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


@dataclass(frozen=True, slots=True)
class Survey(Generic[S_co]):
    """The changes of the tables of one end since they were provisioned."""

    shapes: Mapping[str, S_co]  #: those that exist, by name
    altered: Mapping[str, Sequence[str]]  #: what is wrong with a table, each one line
    parents: Mapping[str, Collection[str]]  #: by foreign key, inside of the replication set
    clock_ahead: float  #: s
    #: Tables of which the site cannot tell all that its users did, each with what to do, whatever links know of it.
    lost: Mapping[str, str] = field(default_factory=dict)


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
        """Take up what marks of the application, or the database's log, tell of, under the fence; rows per table of
        these kinds. `since`: where the link that sends from here goes on.
        Raises LeaseLost, WriteContended, NotInitialized or HistoryLost."""

    def count_arrived(
        self, shapes: Sequence[Any], since: Mapping[str, str], excluded: str | None
    ) -> dict[str, int]:
        """Rows per table that arrived after the position, in one round trip."""


class SourceEnd(End, Protocol):
    """Where changes come from."""

    def cut(self) -> AbstractContextManager[Cut]:
        """One consistent cut, shared by all readers for as long as it is open."""

    def beat(self, position: str | None = None) -> int:
        """A durable write after the cut; returns the new heartbeat. Rows that stand at `position`, or before,
        are on their way to the target of a link."""

    def count_not_owned(self, shapes: Sequence[Any], since: Mapping[str, str]) -> dict[str, int]:
        """Rows per table with owners that this site changed although they are another's."""

    def readers(self, shape: Any, since: str, excluded: str | None, count: int, cut: Cut) -> Reading:
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

    def questions(self, staged: Any) -> Sequence[Question]:
        """Conflicts among the staged rows that somebody else's function decides; nothing is locked."""

    def answer(self, staged: Any, asked: Sequence[tuple[Question, Answer]]) -> None:
        """Put the decisions beside the staged rows, for the write to judge by."""

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
        ask_hook: AsksHook | None = None,
    ) -> dict[str, TableReport]:
        """The one guarded transaction. Returns rows per outcome of every staged table.

        `ask_hook` asks the hooks of tables that have one. Raises HookFailed.

        Without a session it moves no position. Raises RowsOscillate but for the `released` tables. Raises
        DecideAgain where somebody else's function was not shown the present rows, unless it is not asked again
        (`asks`).
        """

    def drop_staging(self) -> None:
        """Remove everything that this transmission staged."""
