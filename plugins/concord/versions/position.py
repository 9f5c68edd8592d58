"""How far has a link sent a site's changes, and where may it resume?

A position is opaque text in the site's own order of arrival (PostgreSQL: a snapshot). Both ends of a link
keep the same history of sessions; a link resumes at the newest session both know (F65, CouchDB's protocol).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

#: Sessions kept at each end: how many runs a restored backup may lie back and still find common ground.
HISTORY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class LinkPosition:
    """The position of every table of a link: one that most share, and those that differ (rule 1)."""

    common: str
    differing: Mapping[str, str] = field(default_factory=dict)

    def of(self, table: str) -> str:
        return self.differing.get(table, self.common)

    def advanced(self, to: str, moved: Iterable[str], tables: Iterable[str]) -> LinkPosition:
        """`moved` tables stand at `to` now; every other table stays where it is (rule 1)."""
        moved_tables = set(moved)
        stayed = {table: self.of(table) for table in tables if table not in moved_tables}
        return LinkPosition(to, {table: position for table, position in stayed.items() if position != to})


@dataclass(frozen=True, slots=True)
class Session:
    """One completed transmission, as both ends remember it."""

    id: str
    source_origin: str
    target_origin: str
    heartbeat: int
    position: LinkPosition


@dataclass(frozen=True, slots=True)
class Resume:
    """Where a link goes on, and whether what came from the target may be left out (rule 2)."""

    session: Session
    at_newest: bool


def resume(
    at_source: Sequence[Session], at_target: Sequence[Session], source_origin: str, target_origin: str
) -> Resume | None:
    """The newest session both ends know (histories are newest first), or None when there is none.

    `at_newest` holds only when neither end knows a newer one and both are still the same incarnations.
    """
    known_at_source = {session.id for session in at_source}
    for session in at_target:
        if session.id in known_at_source:
            newest = session.id == at_target[0].id == at_source[0].id
            same = (session.source_origin, session.target_origin) == (source_origin, target_origin)
            return Resume(session, newest and same)
    return None


def remembered(history: Sequence[Session], session: Session) -> list[Session]:
    """The history with one more session, newest first, no longer than HISTORY_LENGTH."""
    return [session, *(old for old in history if old.id != session.id)][:HISTORY_LENGTH]


def session_to_json(session: Session) -> dict[str, object]:
    """The session as the site stores it (JSON object)."""
    return {
        "id": session.id,
        "source_origin": session.source_origin,
        "target_origin": session.target_origin,
        "heartbeat": session.heartbeat,
        "common": session.position.common,
        "differing": dict(session.position.differing),
    }


def session_from_json(stored: object) -> Session:
    """The inverse of `session_to_json`. Raises ValueError for anything else."""
    match stored:
        case {
            "id": str(session),
            "source_origin": str(source),
            "target_origin": str(target),
            "heartbeat": int(heartbeat),
            "common": str(common),
            "differing": dict(differing),
        } if all(isinstance(position, str) for position in differing.values()):
            return Session(session, source, target, heartbeat, LinkPosition(common, differing))
    raise ValueError("no session")
