"""An entry of the conflict ledger as people meet it, and when it can be overturned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from concord.jobs import stored

Image = Mapping[str, str | None]
Dot = tuple[str, int, int]

#: Digits of an id that people type and read; a longer beginning is asked for where two entries share it.
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """Two versions of one key of which neither included the other, both rows, and which of them won, and why.

    Rows are in the columns of `site`, where it was decided; every value is the database's own exact text.
    """

    id: str
    synchronization: str
    link: str
    transmission: str
    table_name: str
    key: Sequence[str | None]  #: canonical
    conflict_type: str
    resolver: str
    reason: str
    winner_site: str
    loser_site: str
    winner_version: Mapping[str, Any]
    loser_version: Mapping[str, Any]
    winner_row: Image | None  #: None where that version is a delete
    loser_row: Image | None
    withheld: Mapping[str, Any] | None  #: columns and parts of the key that are hashed or dropped
    decided_at: datetime
    site: str
    overturned_at: datetime | None = None
    overturned_by: str | None = None
    overturned_version: Mapping[str, Any] | None = None  #: what the loser came back as

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Entry:
        """The entry as it was collected; another site may have stored anything in it."""
        return cls(**as_stored(found))

    @property
    def short_id(self) -> str:
        return self.id[:SHOWN]

    @property
    def winner(self) -> Dot:
        return dot(self.winner_version)

    @property
    def refusal(self) -> str | None:
        """Why this entry cannot be overturned, whatever stands at its site; None when it can."""
        if self.overturned_at is not None:
            return f"{self.overturned_by} overturned it at {self.overturned_at:%Y-%m-%d %H:%M:%S} UTC"
        if self.winner_row is None and self.loser_row is None:
            return "both sites deleted the row, so there is no other row to bring back"
        if not kept(self.winner_version):
            return "the version that won was not kept, so nobody can tell whether the row was changed since"
        withheld = self.withheld or {}
        if "key" in withheld:
            return "its key is private and not kept here, so the row cannot be found again"
        if self.loser_row is not None and withheld.get("columns"):
            names = ", ".join(sorted(withheld["columns"]))
            return f"{names} of the row that lost {'are' if ',' in names else 'is'} private and not kept here"
        return None


#: The fields of an entry that are JSON, each with what reads it.
_JSON: Mapping[str, Callable[[object], Any]] = {
    "key": stored.key_of,
    "winner_version": stored.version_of,
    "loser_version": stored.version_of,
    "winner_row": stored.image_of,
    "loser_row": stored.image_of,
    "withheld": stored.withheld_of,
    "overturned_version": stored.version_of,
}


def as_stored(found: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry, each JSON of its kind."""
    return {name: _JSON[name](value) if name in _JSON else value for name, value in found.items()}


def kept(version: Mapping[str, Any]) -> bool:
    """Does an entry hold this version of its own?"""
    return version.keys() >= stored.PARTS


def dot(version: Mapping[str, Any]) -> Dot:
    """(origin, `changed_at`, `derived`) of a version as the ledger keeps it; empty for a row nobody ever changed."""
    return (version["origin"], int(version["changed_at"]), int(version["derived"]))


@dataclass(frozen=True, slots=True)
class Overturn:
    """That a loser was brought back, as the site remembers it."""

    conflict: str
    person: str
    version: Mapping[str, Any]
    although_changed: bool
    overturned_at: datetime
