"""Rows that wait at a site: listed, tried again, decided by a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from concord.jobs.link import LinkJob
from concord.jobs.site import SiteAccess
from concord.jobs.waiting import Choice, Unconfigured, WaitingRow


class Desk(Protocol):
    """The target of a link, for as long as its waiting rows are looked at or decided. Raises ConcordErrors alone."""

    def close(self) -> None: ...

    def entries(self, limit: int, *, held: bool = False) -> Sequence[WaitingRow]:
        """The rows that wait for the link, oldest first, with both rows as they are now; or of them the `held` ones."""

    def decide(self, row: WaitingRow, choice: Choice, person: str) -> None:
        """Raises DecisionRefused when either row is another by now, and whatever a write may raise."""

    def retry(self, row: WaitingRow) -> None:
        """Let the next run try it among the first. Raises DecisionRefused where the row no longer fits."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The questions about rows that wait."""

    desk: Callable[[LinkJob], Desk]
    others: Callable[[SiteAccess, Sequence[str]], Sequence[Unconfigured]]  #: for links other than these
    drop: Callable[
        [SiteAccess, Unconfigured, str], None
    ]  #: a person lets go of one, which goes to the conflict log
