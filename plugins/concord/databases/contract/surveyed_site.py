"""One site as provisioning meets it: looked at through its installer, then made ready, checked or taken down."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

from concord.databases.contract.refusal import Refusal
from concord.jobs.replication import ReplicationDefinition
from concord.jobs.site import Credentials
from concord.jobs.snapshot import SnapshotDefinition
from concord.tables.replication_set import ReplicatedTable
from concord.tables.structure import Structure


@dataclass(frozen=True, slots=True)
class Installation:
    """The tables that one site is to carry, through which three logins (installer, reader, applier)."""

    site: str
    installer: Credentials
    reader: str
    applier: str
    tables: tuple[ReplicatedTable, ...]
    max_clock_skew: float = 60.0
    snapshots: tuple[SnapshotDefinition, ...] = ()  #: those of which this site is the source or the target
    replications: tuple[ReplicationDefinition, ...] = ()  #: those of which this site is an end
    log_reader: str = ""  #: the login that reads the site's log, where it publishes or captures
    reads_log: Credentials | None = None  #: how that login reaches the site
    conflicts_kept: timedelta = timedelta(days=30)
    announced: frozenset[str] = frozenset()  #: the tables of whose commits some synchronization wants to hear

    @property
    def carried(self) -> list[ReplicatedTable]:
        """The tables of its links and of its replications."""
        return [*self.tables, *(table for each in self.replications for table in each.tables)]

    @property
    def names(self) -> set[str]:
        """All names under which problems and notices report its tables and copies."""
        copies = (name for each in self.snapshots for name in (each.relation, each.table))
        at_site = (each.at_site(self.site) for each in self.carried)
        return {*(each.name for each in self.carried), *map(str, at_site), *map(str, copies)}

    def without(self, tables: Collection[str], snapshots: Collection[str]) -> Installation:
        """The same without these tables and snapshots, and without what depends on them.

        An incremental snapshot depends on its captured source. That source depends on the snapshots that read it. A
        replication that carries no calls depends on its tables.
        """
        copied = tuple(
            each
            for each in self.snapshots
            if each.name not in snapshots and (each.tracked is None or each.tracked.name not in tables)
        )
        read = {each.tracked.name for each in copied if each.tracked is not None}
        kept = (each for each in self.tables if each.name not in tables)
        fewer = (
            each.model_copy(update={"tables": tuple(t for t in each.tables if t.name not in tables)})
            for each in self.replications
        )
        return replace(
            self,
            tables=tuple(each for each in kept if not each.captured_only or each.name in read),
            snapshots=copied,
            replications=tuple(each for each in fewer if each.tables or each.procedures),
        )


@dataclass(frozen=True, slots=True)
class Lacked:
    """The rights that an installer needs and has not."""

    refusal: str = ""  #: for a person: what is lacking, and who gives it; empty where nothing is
    problems: tuple[Refusal, ...] = ()  #: what no installer must be given
    script: str = ""  #: a superuser runs it once


class SurveyedSite(Protocol):
    """A site that has answered. `sites` are all of its kind that have, itself among them.

    Every method raises ConcordError alone, and each line names the site.
    """

    @property
    def installation(self) -> Installation: ...

    @property
    def identity(self) -> str:
        """Equal at two sites that are one database."""

    @property
    def clock_ahead(self) -> float:
        """Of ours, in seconds."""

    @property
    def lacked(self) -> Lacked: ...

    def structure(self, wanted: ReplicatedTable) -> Structure | None:
        """The table's columns in canonical form; None where it does not exist."""

    def refusals(self, sites: Sequence[Any]) -> Iterator[Refusal]:
        """Reasons not to provision the site, as far as its installer may look; `lacked` has the others."""

    def captured(self, tables: Collection[str]) -> set[str]:
        """Of these tables, those whose capture `provision` would end if they were left out."""

    def provision(self, sites: Sequence[Any]) -> set[tuple[str, str]]:
        """Make it ready, in one transaction.

        Returns synchronization and table where the common history is no longer proven. Raises ProvisioningRefused; then
        nothing was written.
        """

    def script(self, sites: Sequence[Any]) -> str:
        """The same as a script, which its installer runs."""

    def check(self, sites: Sequence[Any], refused: Collection[str]) -> Iterator[str]:
        """Whatever is missing, altered or dangerous. A `refused` table need not be provisioned."""

    def notices(self) -> Iterator[str]:
        """Whatever is no mistake and yet worth knowing."""

    def remove(self) -> None:
        """Take Concord off it; replicated tables and their rows stay."""


@dataclass(frozen=True, slots=True)
class Provisioning:
    """How a database makes its sites ready."""

    survey: Callable[[Installation, ExitStack], SurveyedSite]  #: its connections end with the stack
    number_notices: Callable[
        [Sequence[Any]], Iterator[str]
    ]  #: of all surveyed sites: keys that clash or run out
