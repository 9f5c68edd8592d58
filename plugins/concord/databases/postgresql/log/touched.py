"""The keys that users' committed transactions have touched, out of a log of keys alone (S1-32 b).

A key is touched by an insert, a delete, an update; a key change touches two. Nobody asks here what stands under it
now. Keys leave as rows of COPY's binary format, in which they came: no value is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from struct import Struct

from concord.databases.postgresql.log.frames import Read
from concord.databases.postgresql.log.pgoutput import (
    NULL,
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    Values,
    decode,
)
from concord.databases.postgresql.log.shown import Shown

#: The columns before the key: when the transaction committed (µs since 1970), the place in the log, was it inserted?
COLUMNS = {"concord_at": "bigint", "concord_place": "bigint", "concord_born": "boolean"}

_HEAD = Struct(">hiqiqi?")
_BEGIN, _END = b"PGCOPY\n\xff\r\n\x00" + bytes(8), b"\xff\xff"
#: Messages of inserts, updates and deletes.
_OF_ROWS = b"IUD"
#: µs from 1970 to 2000, where PostgreSQL's begin.
_EPOCH = 946_684_800_000_000
#: Bytes of a table's keys in memory.
_MOST = 1 << 20

#: Takes a whole COPY of the keys of one table.
Take = Callable[[bytes], None]


@dataclass
class TouchedTable:
    """One table: its key, and the keys that were touched so far."""

    name: str
    key: tuple[str, ...]
    since: Shown  #: what this snapshot shows is registered, or was told by triggers
    take: Take | None  #: None where no column has the key's name any more
    touched: int = 0
    lost: str = ""  #: why the log does not tell all that became of it
    _places: tuple[int, ...] = ()
    _rows: list[bytes] = field(default_factory=list)
    _bytes: int = 0

    def described(self, columns: Collection[str]) -> None:
        """Where the key stands among the columns that the log has of it."""
        names = list(columns)
        if set(self.key) <= set(names):
            self._places = tuple(names.index(name) for name in self.key)
        else:
            self.lost = f"its log no longer has its key ({', '.join(self.key)})"

    def add(self, at: int, place: int, values: Values, *, born: bool) -> None:
        key = [values[each] for each in self._places]
        if any(each is None or each == NULL for each in key):
            self.lost = "its log no longer has its key: its replica identity was altered"
            return
        if self.take is None:
            self.lost = f"it no longer has its key ({', '.join(self.key)})"
            return
        row = _HEAD.pack(3 + len(key), 8, at, 8, place, 1, born) + b"".join(key)  # type: ignore[arg-type]
        self._rows.append(row)
        self._bytes += len(row)
        self.touched += 1
        if self._bytes >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Hand on what is in memory."""
        if self._rows and self.take is not None:
            self.take(b"".join((_BEGIN, *self._rows, _END)))
            self._rows, self._bytes = [], 0


@dataclass
class Touched:
    """One reading of the log, from where it was confirmed up to its end."""

    tables: Mapping[int, TouchedTable]  #: by oid
    shown: Shown  #: the snapshot to be registered
    before: Shown  #: the one that is
    applied: Collection[int]  #: transactions of links
    held: int | None = None  #: where the first transaction commits that the snapshot does not show yet
    _committed_at: int = 0
    _place: int = 0

    def read(self, messages: Iterable[bytes | Read | None]) -> None:
        """Raises psycopg.Error."""
        told: dict[int, TouchedTable] = {}  #: of which the transaction is news
        for message in messages:
            if not isinstance(message, bytes) or (not told and message[0] in _OF_ROWS):
                continue  # a link's own rows are most of what a target's log holds
            said = decode(message)
            match said:
                case Begin():
                    told = self._begun(said)
                case Relation():
                    self._described(said)
                case Truncate():
                    for oid in set(said.relations) & told.keys():
                        told[oid].lost = "it was truncated (TRUNCATE), which tells no key"
                case Insert() | Update() | Delete() if said.relation in told:
                    self._touch(told[said.relation], said)
        for table in self.tables.values():
            table.flush()

    def _begun(self, begun: Begin) -> dict[int, TouchedTable]:
        """The tables to which the transaction that begins is news."""
        self._committed_at = begun.committed_at + _EPOCH
        transaction = self.shown.whole(begun.transaction)
        if not self.shown.shows(transaction):
            self.held = begun.commit if self.held is None else self.held
            return {}
        if transaction in self.applied or self.before.shows(transaction):
            return {}
        return {oid: each for oid, each in self.tables.items() if not each.since.shows(transaction)}

    def _described(self, said: Relation) -> None:
        if table := self.tables.get(said.oid):
            table.described([column.name for column in said.columns])

    def _touch(self, table: TouchedTable, said: Insert | Update | Delete) -> None:
        at = self._committed_at
        self._place += 1
        if isinstance(said, Insert):
            table.add(at, self._place, said.new, born=True)
        elif isinstance(said, Delete):
            table.add(at, self._place, said.old, born=False)
        elif said.old is None:
            table.add(at, self._place, said.new, born=False)
        else:  # the key was changed, or is too long to be told twice
            new = [one if one is not None else other for one, other in zip(said.new, said.old, strict=True)]
            table.add(at, self._place, said.old, born=False)
            if new != said.old:
                self._place += 1
                table.add(at, self._place, new, born=True)
