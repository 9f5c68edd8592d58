"""The decoder of pgoutput: bytes of one message → what it says. It does no input and no output.

The layout stands in the manual, "Logical Replication Message Formats", for version 1 of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

#: A value as it travels, its length (4 bytes) before it: COPY's binary format has the very same.
NULL = b"\xff\xff\xff\xff"
#: Stands for a value that was not sent, since it lies in TOAST and was not changed.
UNCHANGED = None

#: Values in the order of the relation's columns.
Values = list[bytes | None]

_BEGIN, _COMMIT = Struct(">QqI"), Struct(">BQQq")
_OID, _COUNT, _LENGTH, _TYPE = Struct(">I"), Struct(">H"), Struct(">I"), Struct(">Ii")


class Begin(NamedTuple):
    """A committed transaction begins."""

    committed_at: int  #: µs since 2000-01-01 UTC
    commit: int  #: where its commit stands in the log
    transaction: int = 0  #: its id, of which the log has 32 bits


class Commit(NamedTuple):
    """It ends."""

    number: int  #: the end of its commit record in the log


class LoggedColumn(NamedTuple):
    """A column of a table as it was when its operation was logged."""

    name: str
    type_oid: int
    modifier: int  #: of the type, as `varchar(20)` has one
    of_key: bool  #: of the replica identity


class Relation(NamedTuple):
    """A table, told before its first row, and whenever it may have changed."""

    oid: int
    schema: str
    name: str
    columns: tuple[LoggedColumn, ...]
    whole: bool  #: its operations bring the row as it was: its replica identity is FULL


class Insert(NamedTuple):
    """A new row."""

    relation: int
    new: Values


class Update(NamedTuple):
    """A changed row."""

    relation: int
    old: Values | None  #: the key before the update where it changed, or the whole row with identity FULL
    new: Values


class Delete(NamedTuple):
    """A row that is gone."""

    relation: int
    old: Values


class Truncate(NamedTuple):
    """All rows of these tables are gone."""

    relations: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate


def decode(message: bytes) -> Message | None:
    """None for messages that say nothing of rows: types, origins, messages of applications."""
    reader = _READERS.get(message[0])
    return None if reader is None else reader(message)


def _begin(message: bytes) -> Begin:
    commit, committed_at, transaction = _BEGIN.unpack_from(message, 1)
    return Begin(committed_at, commit, transaction)


def _commit(message: bytes) -> Commit:
    _, _, number, _ = _COMMIT.unpack_from(message, 1)
    return Commit(number)


def _relation(message: bytes) -> Relation:
    (oid,) = _OID.unpack_from(message, 1)
    schema, at = _text(message, 5)
    name, at = _text(message, at)
    whole = message[at] == ord("f")
    (count,) = _COUNT.unpack_from(message, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        of_key = message[at] == 1
        column, at = _text(message, at + 1)
        type_oid, modifier = _TYPE.unpack_from(message, at)
        columns.append(LoggedColumn(column, type_oid, modifier, of_key))
        at += 8
    return Relation(oid, schema, name, tuple(columns), whole)


def _text(message: bytes, at: int) -> tuple[str, int]:
    end = message.index(0, at)
    return message[at:end].decode(), end + 1


def _insert(message: bytes) -> Insert:
    new, _ = _values(message, 6)
    return Insert(_OID.unpack_from(message, 1)[0], new)


def _update(message: bytes) -> Update:
    (relation,) = _OID.unpack_from(message, 1)
    if message[5] == ord("N"):
        return Update(relation, None, _values(message, 6)[0])
    old, at = _values(message, 6)
    return Update(relation, old, _values(message, at + 1)[0])


def _delete(message: bytes) -> Delete:
    old, _ = _values(message, 6)
    return Delete(_OID.unpack_from(message, 1)[0], old)


def _truncate(message: bytes) -> Truncate:
    (count,) = _LENGTH.unpack_from(message, 1)
    return Truncate(Struct(f">{count}I").unpack_from(message, 6))


def _values(message: bytes, at: int) -> tuple[Values, int]:
    (count,) = _COUNT.unpack_from(message, at)
    at += 2
    values: Values = []
    for _ in range(count):
        kind = message[at]
        at += 1
        if kind == 110:  # n
            values.append(NULL)
        elif kind == 117:  # u
            values.append(UNCHANGED)
        else:  # t or b
            end = at + 4 + _LENGTH.unpack_from(message, at)[0]
            values.append(message[at:end])
            at = end
    return values, at


_READERS: dict[int, Callable[[bytes], Message]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("R"): _relation,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
}
