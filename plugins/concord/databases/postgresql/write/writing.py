"""The matter of a target transaction, and how careful a try of it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from concord.databases.contract.ends import Progress
from concord.databases.contract.memory import LinkState
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write.suspicious import UNSUSPECTING, Suspicion, suspicion_of
from concord.jobs.link import LinkJob
from concord.rules.hook import Hook
from concord.rules.hook_function import AsksHook
from concord.tables.replication_set import ReplicatedTable
from concord.versions.position import Session


class Care(IntEnum):
    """How much a try leaves out, learnt from what the one before was refused."""

    NONE = 0  #: of the rows that waited, what is refused, and what refers to nothing and cannot follow
    ROWS = 1  #: what the target refuses row by row; of the rows that waited, also what refers to nothing
    REFERENCES = 2  #: also what refers to nothing and cannot be mended


@dataclass(frozen=True, slots=True)
class Writing:
    """The matter of the transaction, the same in every try."""

    job: LinkJob
    staged: Sequence[Staged]
    state: LinkState
    session: Session | None  #: None for a write that moves no position (rule 1)
    progress: Progress
    released: frozenset[str] = frozenset()  #: tables whose rows may rebound this time
    asks: bool = True  #: what only a function can decide goes back to it; else the rest of its chain decides
    ask_hook: AsksHook | None = None  #: asks a function that sees every row before it is written

    @property
    def site(self) -> str:
        return self.job.target.name

    def suspicion(self, table: str) -> Suspicion:
        """The limits to look out for. A person, who sees the rows that are there, asks for a repair and an
        initialization."""
        if self.session is None or not self.session.id:
            return UNSUSPECTING
        session = self.session.id if self.job.moves_positions else None
        return suspicion_of(self.job, table, session, released=table in self.released)

    def hook_of(self, name: str) -> Hook | None:
        """The table's hook here. A repair and an initialization make sites equal: they ask none."""
        return None if self.session is None else self.wanted(name).hooks.get(self.site)

    def wanted(self, name: str) -> ReplicatedTable:
        return next(table for table in self.job.tables if table.name == name)
