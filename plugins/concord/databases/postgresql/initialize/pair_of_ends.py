"""Both sites of an initialization, each open as source and as target."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Self, TypeVar

from concord.databases.contract.initialization import Progressed
from concord.databases.postgresql.facts.about_table import about
from concord.databases.postgresql.facts.connection import Connection, Transaction, in_transaction, one
from concord.databases.postgresql.initialize import late_indexes
from concord.databases.postgresql.initialize import progress as initialization_state
from concord.databases.postgresql.initialize.common_history import Proof
from concord.databases.postgresql.initialize.told_versions import ToldVersions
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.acquire import POSITION_QUERY, beat
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.sites import identities, preflight
from concord.databases.postgresql.sites.ends import Source, Target
from concord.databases.postgresql.sites.identities import SiteSequences
from concord.databases.postgresql.write import identity_ranges
from concord.jobs.initialization import InitializationJob
from concord.messages.errors import StructureChanged
from concord.tables.replication_set import ReplicatedTable

End = Source | Target
E = TypeVar("E", Source, Target)


class PairOfEnds:
    """Both ways of a pair. `with` closes them."""

    def __init__(self, job: InitializationJob) -> None:
        self.job = job
        forward = job.link
        reverse = forward.model_copy(
            update={
                "direction": forward.direction.related,
                "source": forward.target,
                "target": forward.source,
            }
        )
        self.reverse_job = reverse
        with ExitStack() as stack:
            #: Readers and writers of both sites, by the way they serve.
            self.forward = (_open(Source(forward), stack), _open(Target(forward), stack))
            self.reverse = (_open(Source(reverse), stack), _open(Target(reverse), stack))
            self._open_ends = stack.pop_all()
        self.shapes: dict[str, tuple[Shape, Shape]] = {}
        self.proven: dict[str, Proof] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open_ends.close()

    @property
    def source(self) -> Source:
        return self.forward[0]

    @property
    def target(self) -> Target:
        return self.forward[1]

    @property
    def _ends(self) -> tuple[End, End]:
        return (self.source, self.target)

    @property
    def synchronization(self) -> str:
        return self.job.link.synchronization

    @property
    def sites(self) -> str:
        """Their names, for a message about either."""
        return f"{self.source.access.name} or {self.target.access.name}"

    def about(self, table: str) -> AbstractContextManager[None]:
        private = any(each.is_private for each in self.job.link.tables if each.name == table)
        return about(table, self.sites, private=private)

    def _check_grants(self) -> None:
        """Before anything is asked of Concord's own tables, or written. Raises PrivilegeMissing."""
        for end in self._ends:
            end.check_grants(self.job.link.tables)

    def _fence(self) -> None:
        self.source.fence()
        self.target.fence()

    def _fenced(self, connection: Connection, site: str) -> AbstractContextManager[Transaction]:
        return link_state.fenced(connection, self.synchronization, self.job.link.epoch, site)

    def _end(self, site: str) -> End:
        return self.source if self.source.access.name == site else self.target

    def _inspect(self, wanted: Sequence[ReplicatedTable]) -> dict[str, tuple[Shape, Shape]]:
        here, _ = self.source.inspect(wanted)
        there, _ = self.target.inspect(wanted)
        self.source.catch_up(here)
        self.target.catch_up(there)
        _refuse_rules((*here, *there))
        return {ours.name: (ours, theirs) for ours, theirs in zip(here, there, strict=True)}

    def _shape(self, table: str, site: str) -> Shape:
        return self.shapes[table][0 if self.source.access.name == site else 1]

    def _pass_numbers(self, loaded: Collection[str]) -> dict[str, list[str]]:
        """At both sites, the sequences of these tables go on after the numbers of their rows. Returns notices."""
        numbers: list[SiteSequences] = []
        wanted = [each for each in self.job.link.tables if each.name in loaded]
        for end in self._ends if wanted else ():
            site = end.access.name
            with end.control() as connection, in_transaction(connection):
                tables = [self._shape(each.name, site).table.name for each in wanted]
                identity_ranges.pass_rows(connection, site, tables)
                numbers.append(identities.read(connection, site, wanted, tables))
        return identities.clashes(numbers)

    def _put_back_indexes(self) -> None:
        """The indexes that a killed load had to leave dropped."""
        for end in self._ends:
            site = end.access.name
            tables = [self._shape(name, site).table.name for name in self.shapes]
            late_indexes.put_back_left(end.connection, self.job.installers.get(site), site, tables)

    def _position(self, end: End) -> str:
        """A snapshot, and then a durable write that keeps its transaction ids used (F67)."""
        with end.control() as connection:
            (position,) = one(connection, POSITION_QUERY)
            beat(connection)
        return str(position)

    def _tell_versions(self, table: str) -> None:
        """Both ways, each under the fence of the site that learns."""
        (ours, theirs), (here, there) = self.shapes[table], self.proven[table].before
        ways = (
            (self.source, ours, self.target, theirs, here),
            (self.target, theirs, self.source, ours, there),
        )
        for source, told, target, learning, since in ways:
            with target.control() as connection, self._fenced(connection, target.access.name):
                ToldVersions(source.connection, told, connection, learning, since).run()

    def place(self, state: Progressed) -> None:
        """Write down how far the table is, at the target, under the fence."""
        with self.target.control() as connection, self._fenced(connection, self.target.access.name):
            initialization_state.place(connection, self.synchronization, state)


def _refuse_rules(shapes: Iterable[Shape]) -> None:
    """A rule that was made since the table was provisioned would leave out rows. Raises StructureChanged."""
    for each in shapes:
        for line in preflight.rule_problems(each.table):
            raise StructureChanged(f"{each.name}: {each.table.name} at {each.site} {line}", table=each.name)


def _open(end: E, stack: ExitStack) -> E:
    stack.callback(end.close)
    return end
