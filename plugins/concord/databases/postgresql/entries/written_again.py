"""Rows that a user's trigger wrote again before the operation of the statement itself was kept.

PostgreSQL calls triggers once a statement has written all of its rows. The first row's trigger may write the second one
again: then the later operation of that row is kept first. Images that do not follow from each other show it.
"""

from __future__ import annotations

from collections.abc import Hashable

from concord.databases.postgresql.facts.connection import Connection, rows

_OF = "concord.entry e JOIN concord.operation o ON o.transaction = e.transaction"


def suspicious(connection: Connection, since: int, until: int) -> set[tuple[int, int]]:
    """Entries of these numbers, each with a table that statements and their triggers have written."""
    found = rows(
        connection,
        f"SELECT e.number, o.relation::bigint FROM {_OF} WHERE e.number BETWEEN {since} AND {until}"
        " GROUP BY 1, 2 HAVING min(o.depth) < max(o.depth)",
    )
    return {(number, relation) for number, relation in found}


class Images:
    """Of one table in one entry: by key, the image that the last operation left."""

    def __init__(self) -> None:
        self._left = dict[Hashable, int | None]()

    def follow(self, before: str | None, after: str | None, was: Hashable, now: Hashable) -> bool:
        """Does the operation find its row as the one before left it? `was` and `now` are the row's keys."""
        if before is None and after is None:  # a truncate
            self._left.clear()
            return True
        found = before is None or self._left.get(was, hash(before)) == hash(before)
        if before is not None:
            self._left[was] = None
        if after is not None:
            found = found and self._left.get(now) is None
            self._left[now] = hash(after)
        return found
