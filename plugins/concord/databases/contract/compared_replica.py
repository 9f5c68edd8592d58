"""The dialect contract of a comparison of a replication's two sites: no version tells there what is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from concord.databases.contract.compared_site import ComparedSite, Horizon
from concord.databases.contract.consumed import Texts


class Touched(NamedTuple):
    """One operation of a transaction, by the rows that it was about."""

    table: str  #: in the replication set
    operation: str  #: insert, update, delete or truncate
    rows: tuple[Texts, ...]  #: before it and after it, each with its key at least


@dataclass(frozen=True, slots=True)
class ComparedLog:
    """The transactions that a publisher commits after its cut, read as long as the context is open that gave it."""

    level: int  #: the cut holds every entry up to this number
    snapshot: str  #: the publisher's tables in that cut, to be joined before `touched` is read
    #: Gives all that was committed between the cut and now, and maybe some of what was before; in parts of any size.
    touched: Callable[[], Iterable[Sequence[Touched]]]


class ComparedReplica(ComparedSite, Protocol):
    """One site's tables of a replication. Every method raises ConcordError alone."""

    @property
    def shapes(self) -> Mapping[str, Any]:
        """By table, those that hold what the other site holds."""

    @property
    def horizon(self) -> Horizon:
        """Before any version: there are none that could have arrived."""

    def under_way(self, table: str, keys: Sequence[Texts]) -> int:
        """Rows of these keys, in this site's own columns, may differ: one of the two cuts is older.

        Returns how many keys of the table it has been told of, so far.
        """
