"""The dialect contract of a comparison of a replication's two sites: no version tells there what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from concord.databases.contract.compared_site import ComparedSite, Horizon
from concord.databases.contract.consumed import Texts, Whole

#: Before any position: a site without versions has none that could have arrived.
NO_HORIZON = Horizon("1:1:", 0)


class ComparedLog(Protocol):
    """The transactions that a publisher commits after its cut, read as long as the context is open that gave it."""

    @property
    def snapshot(self) -> str:
        """The publisher's tables in that cut. It has to be joined before `entries` are read."""

    def entries(self) -> Iterable[Whole]:
        """All that was committed between the cut and now, and maybe some of what was before."""


class ComparedReplica(ComparedSite, Protocol):
    """One site's tables of a replication. Every method raises ConcordError alone."""

    @property
    def shapes(self) -> Mapping[str, Any]:
        """By table, those that hold what the other site holds."""

    def under_way(self, table: str, keys: Sequence[Texts]) -> int:
        """Rows of these keys, in this site's own columns, may differ: one of the two cuts is older.

        Returns how many keys of the table it has been told of, so far.
        """
