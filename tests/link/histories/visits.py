"""Visits: a table of a batch whose changes are told by marks of its application, where logs are read. Each write has a
text of its own, and says which one its user saw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from concord.tables.replication_set import Marks
from tests.given.site import Site

DDL = (
    "CREATE TABLE visit (id int PRIMARY KEY, token text NOT NULL, updated_at timestamptz NOT NULL,"
    " gone boolean NOT NULL)",
    "CREATE INDEX ON visit (updated_at)",
)
MARKS = Marks(changed_at="updated_at", deleted="gone")
NAME = "public.visit"

_WRITE = (
    "INSERT INTO visit VALUES (%(key)s, %(token)s, clock_timestamp(), %(gone)s) ON CONFLICT (id) DO UPDATE"
    " SET token = excluded.token, updated_at = excluded.updated_at, gone = excluded.gone"
)


def copy(source: Site, target: Site) -> None:
    """By people's own means: a table with marks is initialized only where it is equal."""
    for row in source.rows("SELECT id, token, updated_at, gone FROM visit"):
        target.connection.execute("INSERT INTO visit VALUES (%s, %s, %s, %s)", row)


@dataclass
class Visits:
    """All that users wrote, and its ends."""

    saw: dict[str, str | None] = field(default_factory=dict)  #: what each text replaced
    losers: set[str] = field(default_factory=set)  #: as conflict logs have them
    gone: set[str] = field(default_factory=set)  #: that no other site had when theirs left
    _known: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  #: by site

    def write(self, session: psycopg.Connection[Any], key: int, token: str, *, gone: bool) -> None:
        seen = session.execute("SELECT token FROM visit WHERE id = %s FOR UPDATE", [key]).fetchone()
        session.execute(_WRITE, {"key": key, "token": token, "gone": gone})
        self.saw[token] = seen[0] if seen else None

    def look(self, site: Site) -> None:
        self._known[site.name] |= {token for (token,) in site.rows("SELECT token FROM visit")}

    def log(self, conflict: Mapping[str, Any]) -> None:
        self.losers.add((conflict["loser_row"] or {}).get("token"))

    def leave(self, site: str) -> None:
        """Texts that the site told nobody go with it."""
        elsewhere = {token for name, known in self._known.items() if name != site for token in known}
        self.gone |= {token for token in self.saw if token.startswith(f"{site} ")} - elsewhere - self.losers

    def lost(self, final: set[str]) -> Iterator[str]:
        """I2: a write has one of four ends. It stands, or is a recorded loser, or its site left with it; or somebody
        who saw it replaced it."""
        replaced = {seen for token, seen in self.saw.items() if token not in self.gone}
        yield from sorted(self.saw.keys() - final - replaced - self.losers - self.gone)
