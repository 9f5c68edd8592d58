"""The log's messages gathered into batches of whole entries; one larger than a batch comes in several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import overload

from concord.databases.contract.logged_structures import LogAltered
from concord.databases.postgresql.calls.marks import Marks
from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.entries.brake import Brake
from concord.databases.postgresql.log.first_waiting import LEVEL_ROW
from concord.databases.postgresql.log.frames import Read
from concord.databases.postgresql.log.pgoutput import (
    NULL,
    Begin,
    Commit,
    Delete,
    Insert,
    Relation,
    Truncate,
    Update,
    Values,
    decode,
)
from concord.databases.postgresql.log.published import Kind, Published
from concord.messages.errors import StructureChanged
from concord.values.moment import POSTGRESQL, moment

#: A batch ends at the entry that reaches one of these, or in the midst of an entry that exceeds them.
OPERATIONS, BYTES = 20_000, 16_000_000


@dataclass(slots=True)
class Gathered:
    """Rows to be staged: by the table's place in the replication set, and of entries that have ended."""

    rows: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    entries: list[bytes] = field(default_factory=list)
    operations: int = 0
    bytes: int = 0
    level: int | None = None
    last: int = 0  #: the seq of the last operation of whole entries
    largest: int = 0
    is_large: bool = False  #: its one entry is replayed by set
    committed_at: datetime | None = None

    @property
    def full(self) -> bool:
        return self.operations >= OPERATIONS or self.bytes >= BYTES

    @property
    def is_worth_it(self) -> bool:
        """An entry whose last operation filled the batch before has but its end here."""
        return self.operations > 0 or self.level is not None


class Entries:
    """Takes messages in the order of the log, and hands out batches."""

    def __init__(
        self,
        published: Published,
        since: int,
        by_set_from: float = inf,
        ours: str = "",
        brake: Brake | None = None,
        most: float = inf,
    ) -> None:
        """`ours` is the replication whose own transactions do not travel back (S2-09).

        At the entry with `most` operations a batch ends, too (S0-46).
        """
        self._published, self._places, self._since = published, published.places, since
        self._by_set_from, self._brake = by_set_from, brake or Brake("")
        self._commit, self._size, self._held = 0, 0, False
        self._cuts = [each.cut for each in published.tables]
        self._ours, self._level_row, self._replayed = ours.encode(), 0, False
        self._marks = Marks(published)
        self._own = set[int]()  # Concord's own tables, which others need, and those that are being copied
        self._row = staged_row.binary if published.binary else staged_row.text
        self._seq = self._first = self._committed_at = 0
        self._inside, self._most = False, most
        self._written = set[int]()  # by the entry that is being read
        self._batch = Gathered()

    def batches(self, messages: Iterator[bytes | Read | None]) -> Iterator[Gathered]:
        """A batch is handed out when it is full, and at an entry's end when nothing more waits.

        A large entry is in a batch with no other. Raises LogAltered once all before it is handed out.
        """
        yield from filter(None, self.coming(messages))
        if self._batch.is_worth_it:
            yield self._handed_out()

    def coming(self, messages: Iterator[bytes | Read | None]) -> Iterator[Gathered | None]:
        """The same, and None when nothing waits and nothing is gathered."""
        for message in messages:
            if isinstance(message, bytes):
                try:
                    self._take(message)
                except LogAltered:
                    if self._batch.level is not None:  # of the entry that is being read no end follows
                        yield self._handed_out()
                    raise
                if self._batch.full or self._batch.is_large or self._grows_large or self._is_enough:
                    yield self._handed_out()
            elif message is None and not self._inside:
                yield self._handed_out() if self._batch.is_worth_it else None

    @property
    def _grows_large(self) -> bool:
        """Others before it are replayed first."""
        is_large = self._held or self._so_far >= self._by_set_from
        return self._batch.level is not None and self._inside and is_large

    @property
    def _is_enough(self) -> bool:
        """For the throttle, which divides no entry."""
        return not self._inside and self._batch.operations >= self._most

    @property
    def _so_far(self) -> int:
        """Operations of the entry that is being read."""
        return self._seq - self._first

    def _handed_out(self) -> Gathered:
        done, self._batch = self._batch, Gathered()
        return done

    def _take(self, message: bytes) -> None:
        self._batch.bytes += len(message)
        said = decode(message)
        if not (self._own and isinstance(said, Insert | Update | Delete) and said.relation in self._own):
            self._size += len(message)
        if isinstance(said, Insert):
            self._operation(said.relation, b"I", said.new, None)
        elif isinstance(said, Update):
            self._updated(said)
        elif isinstance(said, Delete):
            self._operation(said.relation, b"D", None, said.old)
        elif isinstance(said, Begin):
            self._inside, self._committed_at, self._replayed = True, said.committed_at, False
            self._commit, self._size, self._held = said.commit, 0, False
            self._written.clear()
            self._seq += 1
            self._first = self._seq
            self._begun()
        elif isinstance(said, Commit):
            self._ended(said.number)
        elif isinstance(said, Truncate):
            for relation in said.relations:
                self._operation(relation, b"T", None, None)
        elif isinstance(said, Relation):
            if (said.schema, said.name) == LEVEL_ROW:
                self._level_row = said.oid
            if self._is_passed_over(said):
                self._own.add(said.oid)
            else:
                self._refuse_altered(said)
                self._written.add(said.oid)

    def _is_passed_over(self, said: Relation) -> bool:
        """A table that is being copied may have had another oid when it was written, or another name."""
        return said.oid not in self._places and (
            said.schema == LEVEL_ROW[0] or bool(self._published.left_out)
        )

    def _begun(self) -> None:
        """An entry begins."""

    def _ended(self, number: int) -> None:
        """An entry that the subscriber has already is staged without its end, and so never replayed."""
        self._inside, batch = False, self._batch
        self._marks.ended(number)
        if self._held and number > self._since:
            raise self._brake.held(self._commit, number, self._so_far, self._size)
        if number > self._since and self._seq > self._first:
            first, last = self._bounds
            batch.entries.append(staged_row.entry(first, last, number, self._committed_at, self._so_far))
            if batch.committed_at is None:
                batch.committed_at = moment(self._committed_at, POSTGRESQL)
            batch.level, batch.last = number, last
            batch.largest = max(batch.largest, self._so_far)
            batch.is_large = self._so_far >= self._by_set_from

    def _updated(self, said: Update) -> None:
        """A value in TOAST that was not changed is not sent; the old image has it, as far as there is one."""
        if said.relation in self._own:
            if said.relation == self._level_row:
                self._replayed_here(said.new)
            return
        place = self._places[said.relation]
        table, cut = self._published.tables[place], self._cuts[place]
        old, new = chosen(said.old, cut), chosen(said.new, cut)
        if None in new and old is not None:
            sent = range(len(new)) if table.full else table.before_places
            new = [old[at] if value is None and at in sent else value for at, value in enumerate(new)]
        self._staged(said.relation, b"V" if None in new else b"U", new, old)

    def _replayed_here(self, new: Values) -> None:
        """The first operation of each transaction that was replayed at the publisher, by whichever replication."""
        self._replayed = bool(self._ours) and (new[0] or NULL)[4:] == self._ours

    def _operation(self, relation: int, operation: bytes, new: Values | None, old: Values | None) -> None:
        if self._replayed or relation in self._own:
            return
        cut = self._cuts[self._places[relation]]
        self._staged(relation, operation, chosen(new, cut), chosen(old, cut))

    def _staged(self, relation: int, operation: bytes, new: Values | None, old: Values | None) -> None:
        place = self._places[relation]
        if self._replayed or self._marks.passes_over(place, operation, new):
            return
        table = self._published.tables[place]
        before: list[bytes | None] = [None] * len(table.before)
        if operation in b"UVD":
            before = staged_row.before(old, new, table.before_places)
        values = new if new is not None else [NULL] * len(table.columns)
        self._put(place, operation, values, before)

    def _put(
        self, place: int, operation: bytes, values: Sequence[bytes | None], before: Sequence[bytes | None]
    ) -> None:
        self._seq += 1
        self._held = self._held or self._brake.holds(self._commit, self._so_far, self._size)
        if self._held:  # it is counted to its end, and not staged
            return
        self._batch.rows[place].append(self._row(self._placed(operation), operation, values, before))
        self._batch.operations += 1

    def _placed(self, operation: bytes) -> int:
        """Where the operation that was just counted is replayed."""
        return self._seq

    @property
    def _bounds(self) -> tuple[int, int]:
        """All of the entry's operations stand after the first, up to the last."""
        return self._first, self._seq

    def _refuse_altered(self, said: Relation) -> None:
        """Raises LogAltered where the log has other columns of the table than those for which it is read.

        A value of another type may be read as one of this type, and be another value.
        """
        place = self._places.get(said.oid)
        table = None if place is None else self._published.tables[place]
        if table is None or not table.is_logged_as(said):
            if said.oid in self._written:
                raise StructureChanged(
                    f"{said.schema}.{said.name} was altered at the publisher by a transaction that had written it"
                    " already, which no run can replay; make the same change at the subscriber, and initialize the"
                    " replication again with `replace`"
                )
            different = (
                f"{said.schema}.{said.name} has other columns or types in the publisher's log than it has now"
            )
            if table is None or table.kind is not Kind.ROWS:
                raise StructureChanged(f"{different}; run `provision`, and initialize the replication again")
            raise LogAltered(different, said.oid, said)
        if table.images and not said.whole:
            raise StructureChanged(
                f"the publisher's log holds operations on {said.schema}.{said.name} from before its rows were published"
                " as they were. Run the replication once with `conversions: count`; later runs may compare rows"
            )


def until_level(messages: Iterator[bytes | Read | None], level: int) -> Iterator[bytes | Read | None]:
    """Without the entries that were committed after the level, which may be in the log already."""
    for message in messages:
        if isinstance(message, bytes) and message[:1] == b"B":
            begun = decode(message)
            if isinstance(begun, Begin) and begun.commit >= level:
                return
        yield message


@overload
def chosen(values: Values, places: tuple[int, ...] | None) -> Values: ...
@overload
def chosen(values: Values | None, places: tuple[int, ...] | None) -> Values | None: ...
def chosen(values: Values | None, places: tuple[int, ...] | None) -> Values | None:
    """Without the columns that are not replicated."""
    return values if values is None or places is None else [values[place] for place in places]
