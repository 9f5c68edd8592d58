"""The memory of an end: of itself, and of the links that lead to it or away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from concord.messages.errors import HistoryLost
from concord.tables.replication_set import ReplicatedTable
from concord.versions.position import Session, session_from_json


def session_of(stored: object) -> Session:
    """One session as a site stores it. Raises HistoryLost where Concord did not write it."""
    try:
        return session_from_json(stored)
    except ValueError:
        raise HistoryLost(
            "a session that a site holds of a link is not as Concord wrote it; run `python -m concord initialize NAME"
            " --from SITE`, where SITE is right"
        ) from None


def sessions_of(history: object) -> tuple[Session, ...]:
    """The sessions of a link's history as a site stores it, newest first. Raises HistoryLost for anything else."""
    return tuple(map(session_of, history if isinstance(history, list) else [history]))


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
