"""The questions of a snapshot's refresh to its two databases, whichever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from concord.databases.contract.ends import Cut, Progress
from concord.databases.contract.memory import LinkState, SiteRow
from concord.databases.contract.reading import Reading
from concord.jobs.site import Credentials
from concord.jobs.snapshot import SnapshotJob
from concord.versions.position import Session


@dataclass(frozen=True, slots=True)
class Written:
    """Rows of one refresh by what became of them at the target."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0


class SnapshotLayout(Protocol):
    """The columns of a snapshot at one end."""

    @property
    def structure(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def names(self) -> tuple[str, ...]: ...


class StagedPlace(Protocol):
    """Where executors write, and what of it is to be believed."""

    @property
    def relation(self) -> str: ...

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The staged columns of a row: names, and the types that staging has for them."""

    @property
    def rows(self) -> int: ...

    def believing(self, attempts: tuple[int, ...], rows: int) -> StagedPlace: ...


class SnapshotSourceEnd(Protocol):
    """Where the rows come from. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def inspect_source(self) -> SnapshotLayout:
        """The query's columns. Raises NotProvisioned, IdentityChanged or StructureChanged."""

    def site(self) -> SiteRow: ...

    def fence(self) -> None: ...

    def state(self, link: str) -> LinkState: ...

    def cut(self) -> AbstractContextManager[Cut]: ...

    def beat(self) -> int: ...

    def all_rows(self, cut: Cut) -> tuple[Reading, int | None]:
        """How executors read the whole query, and how many rows they must find (None: not counted)."""

    def changed_rows(self, since: str, cut: Cut) -> tuple[Reading, int]:
        """How executors read what changed after the position, and how many keys that are."""

    def digests(self, cut: Cut) -> Reading: ...

    def refuse_rewritten(self) -> None:
        """Before anything is written. Raises StructureChanged when a table that the query reads was rewritten."""

    def expect(self, session: Session) -> None:
        """Before a full refresh commits at the target: keep its session here, or the two might never meet again."""

    def remember(self, state: LinkState, session: Session) -> None:
        """After an incremental refresh committed at the target."""


class SnapshotTargetEnd(Protocol):
    """Where the rows go. Every method raises ConcordError alone."""

    def close(self) -> None: ...

    def inspect_target(self, source: Any) -> SnapshotLayout:
        """The destination's columns, in the source's order. Raises NotProvisioned or StructureChanged."""

    def site(self) -> SiteRow: ...

    def fence(self) -> None: ...

    def state(self, link: str) -> LinkState: ...

    def digests(self) -> Reading: ...

    def create_staging(self) -> StagedPlace: ...

    def staging_login(self) -> str: ...

    def replace(self, staged: Any, session: Session, progress: Progress) -> Written:
        """The one transaction of a full refresh."""

    def apply(self, staged: Any, state: LinkState, session: Session, progress: Progress) -> Written:
        """The one transaction of an incremental refresh."""

    def drop_staging(self) -> None: ...


class DropSnapshot(Protocol):
    """Takes a snapshot off a site."""

    def __call__(self, installer: Credentials, site: str, name: str, *, with_table: bool) -> Sequence[str]:
        """In one transaction; what was taken, each a phrase.

        Raises StructureChanged when something depends on the table; then nothing was taken.
        """


@dataclass(frozen=True, slots=True)
class SnapshotDialect:
    """How a database opens the two ends of a refresh, and gets rid of a snapshot."""

    source: Callable[[SnapshotJob], SnapshotSourceEnd]
    target: Callable[[SnapshotJob], SnapshotTargetEnd]
    drop: DropSnapshot
