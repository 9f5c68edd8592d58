"""The reader of a queued replication's log: each change travels with the versions of its row before and after it.

An entry is replayed in three parts. First each row's version is judged, then the rows are changed, and then their
versions are written. The two keys of a change of a key are known before the rows are changed.
"""

from __future__ import annotations

from math import inf

from concord.databases.postgresql.entries.brake import Brake
from concord.databases.postgresql.entries.from_log import Entries, chosen
from concord.databases.postgresql.log.pgoutput import NULL, Update, Values
from concord.databases.postgresql.log.published import Kind, Published
from concord.databases.postgresql.queued.version_tables import POSITION

#: Operations of our own: judge the row's version, write it, forget it, take a row back, join a row's two keys.
JUDGE, WRITE, FORGET, COMPENSATE, MOVE = b"J", b"W", b"F", b"C", b"M"
_PARTS = {JUDGE: 0, MOVE: 0, WRITE: 2, FORGET: 2}
#: Entries, parts and operations in one number.
_ENTRY, _PART = 40, 38


class VersionedEntries(Entries):
    """As `Entries`, with the versions of rows."""

    def __init__(self, published: Published, since: int, ours: str, brake: Brake, most: float) -> None:
        super().__init__(published, since, inf, ours, brake, most)
        self._index, self._changes = 0, 0
        self._kinds = [each.kind for each in published.tables]
        self._positions = [
            next((at for at, column in enumerate(each.logged) if column.name == POSITION), 0)
            for each in published.tables
        ]

    @property
    def _so_far(self) -> int:
        """Versions are counted with the rows that have them."""
        return self._changes

    def _begun(self) -> None:
        self._index, self._changes = self._index + 1, 0

    def _placed(self, operation: bytes) -> int:
        part = _PARTS.get(operation, 1)
        if part == 1:
            self._changes += 1
        return (self._index << _ENTRY) + (part << _PART) + self._seq - self._first

    @property
    def _bounds(self) -> tuple[int, int]:
        return self._index << _ENTRY, ((self._index + 1) << _ENTRY) - 1

    def _updated(self, said: Update) -> None:
        place = self._places.get(said.relation, -1)
        if place >= 0 and self._kinds[place] is Kind.VERSIONS:
            self._versioned(place, said.old, said.new)
        else:
            super()._updated(said)

    def _operation(self, relation: int, operation: bytes, new: Values | None, old: Values | None) -> None:
        if relation in self._own:
            return
        place = self._places[relation]
        kind = self._kinds[place]
        if kind is Kind.ROWS:
            super()._operation(relation, operation, new, old)
        elif kind is Kind.VERSIONS:
            self._versioned(place, old, new)
        elif new is not None:
            self._compensated(place, new)

    def _staged(self, relation: int, operation: bytes, new: Values | None, old: Values | None) -> None:
        """An update that changes nothing has no version. One of the key is a delete and an insert (S3-25)."""
        if self._replayed or (operation == b"U" and new == old):
            return
        if operation == b"U" and new is not None and old is not None:
            table = self._published.tables[self._places[relation]]
            if any(new[at] != old[at] for at in table.key_places):
                self._moved(relation, *([values[at] for at in table.key_places] for values in (old, new)))
                super()._staged(relation, b"D", None, old)
                super()._staged(relation, b"I", new, None)
                return
        super()._staged(relation, operation, new, old)

    def _moved(self, relation: int, old: Values, new: Values) -> None:
        """Shadow tables have the key's columns first, and stand in the order of their tables."""
        place = self._places[relation] + self._kinds.count(Kind.ROWS)
        absent: Values = [NULL] * (len(self._published.tables[place].columns) - len(new))
        self._put(place, MOVE, [*new, *absent], [*old, *absent])

    def _versioned(self, place: int, old: Values | None, new: Values | None) -> None:
        """A version that this very transaction made is not judged."""
        if self._replayed:
            return
        table, at = self._published.tables[place], self._positions[place]
        before = [NULL] * len(table.before) if old is None else chosen(old, self._cuts[place])
        if new is None:
            self._put(place, FORGET, [NULL] * len(table.columns), before)
            return
        whole = [value if value is not None else (old or new)[n] for n, value in enumerate(new)]
        after = chosen(whole, self._cuts[place])
        if old is None or old[at] != new[at]:
            self._put(place, JUDGE, after, before)
        self._put(place, WRITE, after, before)

    def _compensated(self, place: int, new: Values) -> None:
        """It stands in a transaction of the subscriber's own, which else does not travel back (S3-30)."""
        table = self._published.tables[place]
        names = [column.name for column in table.columns]
        if (new[names.index("replication")] or NULL)[4:] == self._ours:
            self._put(place, COMPENSATE, new, [None] * len(table.before))
