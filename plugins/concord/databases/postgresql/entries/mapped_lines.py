"""Rows of a table that the sites keep differently: read from lines of COPY, mapped, and written as lines again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from concord.databases.postgresql.entries import staged_row
from concord.messages.errors import MappingNotReversible
from concord.tables.manipulation import Texts
from concord.tables.row_mapping import Mapped, Mapper, RowMapping

#: Rows of a first copy that are mapped together.
AT_ONCE = 20_000
#: As COPY writes them, and as exact texts.
_TRUTHS = {b"t": "true", b"f": "false"}
_NOTHING = b"\\N"
Reader = Callable[[Sequence[bytes]], Texts]


@dataclass(frozen=True)
class TableMapping:
    """The way of a table's rows, and that of their keys, which a row that is gone leaves."""

    rows: RowMapping
    keys: RowMapping
    truths: frozenset[str]  #: the publisher's columns of the type boolean

    def reader(self, mapping: RowMapping) -> Reader:
        """From the fields of a line to exact texts. COPY spells truth values in a way of its own."""
        spelled = {at for at in mapping.taken if mapping.source.names[at] in self.truths}
        if not spelled:
            return lambda fields: tuple(map(staged_row.value, fields))
        return lambda fields: tuple(
            _TRUTHS.get(field, staged_row.value(field)) if at in spelled else staged_row.value(field)
            for at, field in enumerate(fields)
        )


def copied(mapping: TableMapping, blocks: Iterable[bytes], mapper: Mapper) -> Iterator[bytes]:
    """Rows of a first copy. Raises MappingNotReversible for one that would not come back the same."""
    lines, read = _lines(blocks), mapping.reader(mapping.rows)
    while some := list(islice(lines, AT_ONCE)):
        made = mapper(mapping.rows, [read(line.split(b"\t")) for line in some])
        for each in made:
            if each.refused is not None:
                raise MappingNotReversible(
                    f"a row does not fit the mapping: {each.refused}. Nothing was written"
                )
        yield b"".join(b"\t".join(map(staged_row.field, each.row)) + b"\n" for each in made)


def _lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """A value has no line's end: COPY writes it otherwise."""
    left = b""
    for block in blocks:
        *whole, left = (left + block).split(b"\n")
        yield from whole


def mapped_lines(mapping: TableMapping, lines: Sequence[bytes], mapper: Mapper) -> list[bytes]:
    """Staged operations in the subscriber's columns; the last field says why one cannot be replayed."""
    readers = (mapping.reader(mapping.rows), mapping.reader(mapping.keys))
    operations = [_Operation(mapping, line, *readers) for line in lines]
    rows = iter(mapper(mapping.rows, [each.row for each in operations if each.row is not None]))
    keys = iter(_mapped_keys(mapping.keys, [each.key for each in operations if each.key is not None], mapper))
    return [
        each.line(None if each.row is None else next(rows), None if each.key is None else next(keys))
        for each in operations
    ]


def _mapped_keys(mapping: RowMapping, keys: Sequence[Texts], mapper: Mapper) -> Sequence[Mapped]:
    return mapper(mapping, keys) if mapping.changed else [Mapped(key) for key in keys]


class _Operation:
    """One staged line, in the publisher's columns."""

    def __init__(self, mapping: TableMapping, line: bytes, read_row: Reader, read_key: Reader) -> None:
        self.mapping = mapping
        self.seq, self.operation, self.kept, *values = line.removesuffix(b"\n").split(b"\t")
        width = len(mapping.rows.source.names)
        has_row, has_key = self.operation in b"IUV", self.operation in b"UVD"
        self.row = read_row(values[:width]) if has_row else None
        self.key = read_key(values[width:]) if has_key else None

    def line(self, row: Mapped | None, key: Mapped | None) -> bytes:
        """The same in the subscriber's."""
        reason = (row and row.refused) or (key and key.refused)
        refused = None if reason is None else f"it does not fit the mapping ({reason}), which must be widened"
        fields = [
            *_fields(self.mapping.rows, row, whole=reason is None),
            *_fields(self.mapping.keys, key, whole=reason is None),
        ]
        return b"\t".join([self.seq, self.operation, self._kept, *fields, staged_row.field(refused)]) + b"\n"

    @property
    def _kept(self) -> bytes:
        """A value is unchanged where all that it is made of is."""
        if self.kept == _NOTHING:
            return _NOTHING
        unsent = {at for at, bit in enumerate(self.kept) if bit == ord("1")}
        return b"".join(b"1" if of and of <= unsent else b"0" for of in self.mapping.rows.origins)


def _fields(mapping: RowMapping, made: Mapped | None, *, whole: bool) -> list[bytes]:
    """Of a row that is refused, the values that no mapping touches."""
    names = mapping.target.names
    if made is None:
        return [_NOTHING] * len(names)
    return [
        staged_row.field(value if whole or name not in mapping.changed else None)
        for name, value in zip(names, made.row, strict=True)
    ]
