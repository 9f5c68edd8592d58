"""The decisions of another policy: stored conflicts judged again, by the pure rule; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from concord.jobs.ledger import Entry, Image, dot, kept
from concord.rules.kinds import KINDS, named
from concord.rules.policy import Chains
from concord.rules.resolver import Contender, Row
from concord.tables.manipulation import Manipulation
from concord.versions.conflict import BETWEEN_VERSIONS, ConflictType, Decision, Winner
from concord.versions.row_version import RowVersion


class Judgement(StrEnum):
    """How what would have been stands to what was."""

    SAME = "same"
    ANOTHER_ROW = "another row"  #: the other side would have won, with other content
    OTHER_SIDE = "other side"  #: it would have won with the same content: only the version would differ
    HELD = "held"  #: a person would have been asked
    UNKNOWN = "unknown"  #: what the policy asks for was withheld or not kept, or no policy decided this


@dataclass(frozen=True, slots=True)
class Judged:
    """One entry under the other policy."""

    entry: Entry
    judgement: Judgement
    would_win: str = ""  #: the site
    resolver: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Another policy of one table, at the site whose rows the entries hold."""

    chains: Chains
    manipulations: Mapping[str, Manipulation]  #: site → how it keeps the table

    def judge(self, entry: Entry) -> Judged:
        """Which of the two would have won. The same, whichever link had met them."""
        if (unreadable := self._unreadable(entry)) is not None:
            return Judged(entry, Judgement.UNKNOWN, reason=unreadable)
        winner = self._contender(entry, entry.winner_version, entry.winner_row)
        loser = self._contender(entry, entry.loser_version, entry.loser_row)
        if (unknown := self._unknown(entry, winner.version, loser.version)) is not None:
            return Judged(entry, Judgement.UNKNOWN, reason=unknown)
        return _judged(entry, self.chains.decide(winner, loser))

    def _unreadable(self, entry: Entry) -> str | None:
        """Why the entry does not hold what is asked: it may be older than the configuration, or than this release."""
        if not (kept(entry.winner_version) and kept(entry.loser_version)):
            return "a version of it was not kept"
        if (manipulation := self.manipulations.get(entry.site)) is None:
            return "its site has left the configuration"
        asked = {own for each in manipulation.operations for own in each.own}
        asked |= set(manipulation.own_names(self.chains.columns)) if self.chains.columns else set()
        dropped = {*(entry.withheld or {}).get("columns", ())}
        rows = (row for row in (entry.winner_row, entry.loser_row) if row is not None and self.chains.columns)
        if any(asked - row.keys() - dropped for row in rows):
            return "its table had other columns then"
        return None

    def _unknown(self, entry: Entry, winner: RowVersion, loser: RowVersion) -> str | None:
        if named(entry.resolver)[0] not in KINDS:
            return f"it was decided by {entry.resolver}, not by a policy"
        if entry.conflict_type not in BETWEEN_VERSIONS:
            return f"{entry.conflict_type} is decided by no policy"
        if not loser.is_absent and winner.includes(loser):
            return "the row that won was made of both"
        if self.chains.policy.merges:
            return "the other policy may make a new row"
        private = {*(entry.withheld or {}).get("columns", ())}
        if not private.isdisjoint(self.manipulations[entry.site].own_names(self.chains.columns)):
            return "a column that decides is private"
        return None

    def _contender(self, entry: Entry, version: Mapping[str, Any], row: Image | None) -> Contender:
        born = entry.conflict_type in (ConflictType.INSERT_INSERT, ConflictType.IDENTITY_COLLISION)
        return Contender(version_of(version, born=born), self._canonical(entry, row))

    def _canonical(self, entry: Entry, row: Image | None) -> Row | None:
        if row is None or not self.chains.columns:
            return None
        dropped: Image = dict.fromkeys((entry.withheld or {}).get("columns", ()))
        return self.manipulations[entry.site].canonical_row({**dropped, **row})


def version_of(stored: Mapping[str, Any], *, born: bool = False) -> RowVersion:
    """A version as the ledger keeps it; whether its key was new, the type of the conflict says."""
    vector = {origin: (int(at), int(derived)) for origin, (at, derived) in stored["vector"].items()}
    return RowVersion(*dot(stored), vector, bool(stored["deleted"]), born)


def _judged(entry: Entry, decision: Decision) -> Judged:
    said = (decision.resolver, decision.reason)
    if decision.winner is Winner.HELD:
        return Judged(entry, Judgement.HELD, "nobody", *said)
    if decision.winner is Winner.SOURCE:
        return Judged(entry, Judgement.SAME, entry.winner_site, *said)
    alike = entry.winner_row == entry.loser_row
    judgement = Judgement.OTHER_SIDE if alike else Judgement.ANOTHER_ROW
    return Judged(entry, judgement, entry.loser_site, *said)
