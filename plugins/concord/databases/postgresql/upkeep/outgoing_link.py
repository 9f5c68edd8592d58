"""Which links leave a site with a table, how far they have sent its tombstones, and which are waited for (S1-39)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.rows import link_state
from concord.messages.errors import NotInitialized
from concord.versions.position import Session


@dataclass(frozen=True, slots=True)
class OutgoingLink:
    """A link at the site that it leaves, as far as one table is concerned."""

    name: str
    peer: str
    session: Session | None  #: the newest; None for a link that has never carried the table
    silent_since: datetime | None
    forced: bool  #: a person had tombstones removed that it had not sent; it must be initialized again

    def may_be_forced(self, reached: Collection[str], silent_before: datetime | None) -> bool:
        """Is the site at its other end not reached, and unheard of for so long that a person may say: do not wait?
        Once said, it holds until the link is initialized again."""
        if self.peer in reached:
            return False
        if self.forced or silent_before is None:
            return self.forced
        return self.silent_since is None or self.silent_since < silent_before

    def waiting(self, table: str) -> str:
        """Condition on a shadow row `p`: this link has not sent it yet."""
        assert self.session is not None, "a link that never ran is asked for before"
        position = literal(self.session.position.of(table))
        return f"NOT pg_visible_in_snapshot(p.position, {position}::pg_snapshot)"


def outgoing_links(
    connection: Connection, site: str, table: str, configured: Mapping[str, str]
) -> list[OutgoingLink]:
    """The links that leave the site with the table; `configured`: link name → the site at its other end.

    A link that has left the configuration still counts for as long as the site remembers it. It may come back, and
    would not hear of a delete that is forgotten by then (rule 10).
    """
    remembered = dict(
        rows(
            connection,
            f"SELECT link, peer FROM concord.link_state WHERE role = 'source' AND initialized ? {literal(table)}",
        )
    )
    every = sorted((remembered | dict(configured)).items())
    return [_outgoing(connection, site, table, name, peer) for name, peer in every]


def _outgoing(connection: Connection, site: str, table: str, name: str, peer: str) -> OutgoingLink:
    try:
        state = link_state.read(connection, name, site)
    except NotInitialized:
        return OutgoingLink(name, peer, None, None, forced=False)
    session = state.history[0] if table in state.initialized else None
    return OutgoingLink(name, peer, session, state.written_at, state.forced_at is not None)
