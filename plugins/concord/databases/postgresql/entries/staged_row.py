"""One operation as a row of COPY: cut from the log's own bytes, in their form."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from struct import Struct

from concord.databases.postgresql.log.pgoutput import NULL, Values

#: How a row is made: seq, operation, values (None: unchanged), key before.
Form = Callable[[int, bytes, Sequence[bytes | None], Sequence[bytes | None]], bytes]

_HEAD, _BITS, _ENTRY = Struct(">HIqI1s"), Struct(">II"), Struct(">HIqIqIqIqIq")
#: Before the first row of a binary COPY, and after the last one.
SIGNATURE, TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
_SPECIAL = re.compile(rb"[\\\t\n\r]")
_MADE = re.compile(rb"\\(.)", re.DOTALL)
_MEANT = {b"t": b"\t", b"n": b"\n", b"r": b"\r"}
_ESCAPED = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}


def binary(
    seq: int, operation: bytes, values: Sequence[bytes | None], before: Sequence[bytes | None]
) -> bytes:
    """In the log each value has its length before it, and so it has in COPY."""
    head = _HEAD.pack(3 + len(values) + len(before), 8, seq, 1, operation)
    return b"".join([head, _kept(values), *(each or NULL for each in (*values, *before))])


def _kept(values: Sequence[bytes | None]) -> bytes:
    """A bit string: which values are unchanged, and were not sent. NULL where all were."""
    if None not in values:
        return NULL
    bits = _bits(values)
    size = (len(bits) + 7) // 8
    packed = int(bits.ljust(size * 8, "0"), 2).to_bytes(size, "big")
    return _BITS.pack(4 + size, len(bits)) + packed


def _bits(values: Sequence[bytes | None]) -> str:
    return "".join("1" if each is None else "0" for each in values)


def text(seq: int, operation: bytes, values: Sequence[bytes | None], before: Sequence[bytes | None]) -> bytes:
    """The same for values that travel as text."""
    kept = _bits(values).encode() if None in values else b"\\N"
    fields = [str(seq).encode(), operation, kept, *map(_escaped, (*values, *before))]
    return b"\t".join(fields) + b"\n"


def _escaped(value: bytes | None) -> bytes:
    if value is None or value is NULL:
        return b"\\N"
    return escaped(value[4:])


def escaped(value: bytes) -> bytes:
    """A value in a line of COPY."""
    return _SPECIAL.sub(lambda found: _ESCAPED[found[0]], value)


def value(field: bytes) -> str | None:
    """A field of such a line, read again."""
    if field == b"\\N":
        return None
    return _MADE.sub(lambda found: _MEANT.get(found[1], found[1]), field).decode()


def field(value: str | None) -> bytes:
    """A text as a field of such a line."""
    return b"\\N" if value is None else escaped(value.encode())


def entry(seq: int, last: int, number: int, committed_at: int, operations: int) -> bytes:
    """An entry as a row of binary COPY: its operations have numbers after `seq`, up to `last`."""
    return _ENTRY.pack(5, 8, seq, 8, last, 8, number, 8, committed_at, 8, operations)


def entry_of(row: bytes) -> tuple[int, int, int, int]:
    """The same read again: `seq`, last, number, committed_at."""
    _, _, seq, _, last, _, number, _, committed_at, _, _ = _ENTRY.unpack(row)
    return seq, last, number, committed_at


def before(old: Values | None, new: Values | None, places: Sequence[int]) -> list[bytes | None]:
    """The values that the row has before the operation; without an old image they are as after it."""
    values = old or new or []
    return [values[place] for place in places]
