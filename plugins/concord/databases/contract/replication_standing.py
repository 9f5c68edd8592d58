"""How a replication stands at its two ends, for people (S4-113)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ReplayedLevel:
    """How far a subscriber is (S4-113)."""

    number: int
    text: str  #: the same as its publisher writes it
    committed_at: datetime | None  #: the last entry, at the publisher; None before the first
    current_at: datetime | None  #: all that the publisher had committed until then is here
    entries: int  #: that were replayed so far
    conversions: int
    largest: int  #: operations of the largest entry since the copy
    reason: str | None  #: why it is no longer valid; None: it is
    reinitialize: str | None = None  #: why conflicts ask to copy the subscriber anew; None: none does
    differing: tuple[str, ...] = ()  #: tables of skipped entries, neither copied anew nor found equal since


@dataclass(frozen=True, slots=True)
class KeptLog:
    """The log that a publisher keeps for one replication."""

    behind: int  #: bytes of log since the subscriber's level, those of other tables included
    kept: int | None  #: bytes of log that may not be removed
    state: str | None  #: the publisher's own word for it: `lost` when it was removed all the same
    is_read: bool  #: a run reads it now
    now: datetime  #: by the publisher's clock
    waits: bool  #: it holds an entry that is not replayed yet
    waiting_since: datetime | None = None  #: when the first of these was committed; None: unknown
