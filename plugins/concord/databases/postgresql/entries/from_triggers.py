"""Captured operations as batches of whole entries."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries import from_log, staged_row, written_again
from concord.databases.postgresql.entries.brake import Brake
from concord.databases.postgresql.entries.captured_row import CapturedTable, read
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.entries.written_again import Images
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import Published
from concord.databases.postgresql.operations import triggers
from concord.databases.postgresql.operations.triggers import array
from concord.messages.errors import EntryRefused, StructureChanged
from concord.values.moment import POSTGRESQL, moment

#: Entries that are looked at together.
AT_ONCE = 2_000
#: When an entry `e` was committed. Another site may have stored `infinity`, which is no number of microseconds.
_AT = "CASE WHEN isfinite(e.at) THEN e.at ELSE '9999-12-29 00:00:00+00' END"
#: Seconds between two looks at a publisher of which nothing comes.
POLL = 0.2


class Entry(NamedTuple):
    """One transaction, as far as its operations are of this replication's tables."""

    number: int
    since: int
    first: int
    last: int
    at: int  #: µs since 2000-01-01 UTC
    operations: int
    bytes: int
    relations: list[int | None]
    depth: int  #: beyond 1 a user's trigger has written, too

    @property
    def last_seq(self) -> int:
        """Its operations have the numbers after `since`, by their places."""
        return self.since + self.last - self.first + 1


class Operations:
    """The operations of one replication's tables, from one level on."""

    def __init__(
        self,
        connection: Connection,
        published: Published,
        structures: Mapping[int, str],
        level: int,
        by_set_from: float,
        brake: Brake,
        most: float,
    ) -> None:
        """`structures` are those of the tables when they were looked at; `most` operations are a batch."""
        self._connection, self._level = connection, level
        tables = enumerate(published.tables)
        self._tables = {each.table.oid: (place, CapturedTable(each)) for place, each in tables}
        self._structures, self._by_set_from, self._brake = structures, by_set_from, brake
        self._most = most

    def batches(self, end: int) -> Iterator[Gathered]:
        """Up to the number `end`. A large entry is in a batch with no other. None where no table is read."""
        while self._structures and self._level < end:
            found = self._entries(end)
            for group in self._groups(found):
                yield from self._gathered(group)
            self._level = found[-1].number if found else end

    def coming(self, end: Callable[[], int]) -> Iterator[Gathered | None]:
        """Without an end: `end` is asked for it time and again. None when nothing has come."""
        while True:
            yield from self.batches(end())
            yield None
            time.sleep(POLL)

    @property
    def passed(self) -> int:
        return self._level

    def _entries(self, end: int) -> list[Entry]:
        """The next ones, those without operations for us included."""
        marks = " ".join(f"WHEN {oid} THEN {literal(mark)}" for oid, mark in self._structures.items())
        found = rows(
            self._connection,
            "SELECT e.number, e.since, e.first_place, e.last_place,"
            f" (extract(epoch FROM {_AT} - '2000-01-01 00:00:00+00') * 1000000)::bigint,"
            " count(o.place), coalesce(sum(o.bytes), 0)::bigint, array_agg(DISTINCT o.relation::bigint),"
            " coalesce(max(o.depth), 0), array_agg(DISTINCT o.relation::bigint)"
            f" FILTER (WHERE o.structure IS DISTINCT FROM CASE o.relation {marks} END)"
            f" FROM (SELECT * FROM concord.entry WHERE number > {self._level} AND number <= {end}"
            f" ORDER BY number LIMIT {AT_ONCE}) e LEFT JOIN concord.operation o ON o.transaction = e.transaction"
            f" AND o.relation = ANY ({array(list(self._structures))})"
            " GROUP BY 1, 2, 3, 4, 5 ORDER BY 1",
        )
        if altered := {oid for each in found for oid in each[9] or ()}:
            raise self._altered(altered)
        return [Entry(*each[:9]) for each in found]

    def _altered(self, oids: Collection[int]) -> StructureChanged:
        names = ", ".join(sorted(self._tables[oid][1].name for oid in oids))
        return StructureChanged(
            f"{names}: the table has other columns than when its operations were captured; run `provision`, and"
            f" initialize the replication again with `replace` and `tables: [{names}]`"
        )

    def _refuse_altered(self) -> None:
        """A record is read by its columns' places. Raises StructureChanged where these are others by now."""
        now = triggers.structures(self._connection, list(self._structures))
        if altered := [oid for oid, mark in self._structures.items() if now.get(oid) != mark]:
            raise self._altered(altered)

    def _groups(self, found: Sequence[Entry]) -> Iterator[list[Entry]]:
        """Those that make one batch, or begin it. Raises BrakeHeld once those before the entry are handed out."""
        group = list[Entry]()
        for each in found:
            if not each.operations:
                continue
            held = self._brake.holds(each.number, each.operations, each.bytes)
            if group and (held or self._is_large(each) or self._fills(group)):
                yield group
                group = []
            if held:
                raise self._brake.held(each.number, each.number, each.operations, each.bytes)
            group.append(each)
            if self._is_large(each):
                yield group
                group = []
        if group:
            yield group

    def _fills(self, group: Sequence[Entry]) -> bool:
        operations, size = sum(each.operations for each in group), sum(each.bytes for each in group)
        return operations >= min(from_log.OPERATIONS, self._most) or size >= from_log.BYTES

    def _is_large(self, entry: Entry) -> bool:
        return entry.operations >= self._by_set_from

    def _gathered(self, group: Sequence[Entry]) -> Iterator[Gathered]:
        """The last one has the entries; whatever is too much for one batch comes before."""
        batch = Gathered()
        for place, row in self._rows(group):
            batch.rows[place].append(row)
            batch.operations += 1
            batch.bytes += len(row)
            if batch.full:
                yield batch
                batch = Gathered()
        self._refuse_altered()
        batch.entries = [
            staged_row.entry(each.since, each.last_seq, each.number, each.at, each.operations)
            for each in group
        ]
        batch.level, batch.last = group[-1].number, group[-1].last_seq
        batch.largest = max(each.operations for each in group)
        batch.is_large = batch.largest >= self._by_set_from
        batch.committed_at = moment(group[0].at, POSTGRESQL)
        yield batch

    def _rows(self, group: Sequence[Entry]) -> Iterator[tuple[int, bytes]]:
        """Each with the place of its table."""
        suspicious = self._suspicious(group)
        images: dict[tuple[int, int], Images] = defaultdict(Images)
        for number, oid, seq, operation, before, after in self._kept(group):
            place, table = self._tables[int(oid)]
            was, now = read(before), read(after)
            entry, keys = (int(number), int(oid)), (table.key(was), table.key(now))
            if entry in suspicious and not images[entry].follow(before, after, *keys):
                raise _misplaced(number, table.name)
            yield place, table.line(seq, operation, was, now)

    def _suspicious(self, group: Sequence[Entry]) -> set[tuple[int, int]]:
        if max(each.depth for each in group) < 2:
            return set()
        return written_again.suspicious(self._connection, group[0].number, group[-1].number)

    def _kept(self, group: Sequence[Entry]) -> Iterator[tuple[Any, ...]]:
        """Operations in their order, as texts, one after the other as they are sent."""
        query = (
            "SELECT e.number, o.relation::bigint, e.since + o.place - e.first_place + 1, o.operation, o.before, o.after"
            " FROM concord.entry e JOIN concord.operation o ON o.transaction = e.transaction"
            f" WHERE e.number >= {group[0].number} AND e.number <= {group[-1].number}"
            f" AND o.relation = ANY ({array(list(self._structures))}) ORDER BY e.number, o.place"
        )
        with self._connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
            yield from copy.rows()


def _misplaced(number: str, table: str) -> EntryRefused:
    return EntryRefused(
        f"entry {number} cannot be replayed: a trigger of users' wrote a row of {table} again that its statement had"
        " written, so that triggers cannot tell which came first. Take capture: log, and initialize the replication"
        " again"
    )
