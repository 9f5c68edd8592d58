"""Staged rows read again as operations in the order of commits: for whoever is no subscriber (S0-41)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from concord.databases.contract.compared_replica import Touched
from concord.databases.contract.consumed import Operation, Texts, Whole
from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.entries.from_log import Gathered
from concord.databases.postgresql.log.published import Published, PublishedTable
from concord.values.moment import POSTGRESQL, moment

_WORDS = {b"I": "insert", b"U": "update", b"V": "update", b"D": "delete", b"T": "truncate"}
#: A row as it was staged: its place in the order, its table's place, the line of COPY.
Row = tuple[int, int, bytes]


def whole_entries(published: Published, batches: Iterable[Gathered]) -> Iterator[Whole]:
    """Of batches whose values are texts. An entry that came in several is handed out with its end.

    Rows of an entry that the level includes were staged without an end, and are left out.
    """
    waiting: list[Row] = []
    for batch in batches:
        waiting += [
            (int(row[: row.index(b"\t")]), place, row) for place, rows in batch.rows.items() for row in rows
        ]
        if batch.level is not None:
            waiting.sort(key=lambda row: row[0])
            yield Whole(list(_operations(published, batch, waiting)), batch.level)
            waiting = [row for row in waiting if row[0] > batch.last]


def touched(published: Published, batches: Iterable[Gathered]) -> Iterator[list[Touched]]:
    """The same batches as they come: nothing waits for an entry's end, however large it is."""
    for batch in batches:
        yield [_touched(published.tables[place], row) for place, rows in batch.rows.items() for row in rows]


def _touched(table: PublishedTable, line: bytes) -> Touched:
    operation, *images = _images(table, line)
    return Touched(table.name, operation, tuple(each for each in images if each is not None))


def _operations(published: Published, batch: Gathered, rows: Sequence[Row]) -> Iterator[Operation]:
    left = iter(rows)
    row = next(left, None)
    for first, last, number, committed_at in map(staged_row.entry_of, batch.entries):
        at, seq = moment(committed_at, POSTGRESQL), 0
        while row is not None and row[0] <= last:
            if row[0] > first:
                seq += 1
                table = published.tables[row[1]]
                operation, key, now = _images(table, row[2])
                yield Operation(number, at, seq, table.name, operation, key, now)
            row = next(left, None)


def _images(table: PublishedTable, line: bytes) -> tuple[str, Texts | None, Texts | None]:
    _, operation, kept, *values = line.removesuffix(b"\n").split(b"\t")
    columns = [column.name for column in table.columns]
    texts = list(map(staged_row.value, values))
    now, was = texts[: len(columns)], texts[len(columns) :]
    sent = kept if operation == b"V" else b"0" * len(columns)
    row = {name: text for name, text, bit in zip(columns, now, sent.decode(), strict=True) if bit == "0"}
    before = dict(zip(table.before, was, strict=True))
    word = _WORDS[operation]
    if word == "truncate":
        return word, None, None
    if word == "delete":
        return word, before, None
    return word, {name: row[name] for name in table.key} if word == "insert" else before, row
