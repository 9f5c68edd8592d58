"""The decoder gives back what the messages of the manual's layout hold."""

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from concord.databases.postgresql.log.frames import lsn, number
from concord.databases.postgresql.log.pgoutput import (
    NULL,
    Begin,
    Commit,
    Delete,
    Insert,
    LoggedColumn,
    Relation,
    Truncate,
    Update,
    decode,
)

VALUES = st.lists(
    st.one_of(st.none(), st.just(NULL), st.binary(max_size=9).map(lambda v: pack(">I", len(v)) + v))
)
OIDS = st.integers(0, 2**32 - 1)
NUMBERS = st.integers(0, 2**64 - 1)


def tuple_of(values: list[bytes | None]) -> bytes:
    def one(value: bytes | None) -> bytes:
        if value is None:
            return b"u"
        return b"n" if value is NULL else b"b" + value

    return pack(">H", len(values)) + b"".join(map(one, values))


@given(OIDS, VALUES)
def test_a_new_row(oid: int, values: list[bytes | None]) -> None:
    assert decode(b"I" + pack(">I", oid) + b"N" + tuple_of(values)) == Insert(oid, values)


@given(OIDS, st.none() | VALUES, VALUES, st.sampled_from([b"K", b"O"]))
def test_a_changed_row(
    oid: int, old: list[bytes | None] | None, new: list[bytes | None], kind: bytes
) -> None:
    before = b"" if old is None else kind + tuple_of(old)
    assert decode(b"U" + pack(">I", oid) + before + b"N" + tuple_of(new)) == Update(oid, old, new)


@given(OIDS, VALUES, st.sampled_from([b"K", b"O"]))
def test_a_row_that_is_gone(oid: int, old: list[bytes | None], kind: bytes) -> None:
    assert decode(b"D" + pack(">I", oid) + kind + tuple_of(old)) == Delete(oid, old)


@given(NUMBERS, NUMBERS, st.integers(-(2**63), 2**63 - 1), OIDS)
def test_a_transaction_begins_and_ends(start: int, end: int, at: int, transaction: int) -> None:
    assert decode(b"B" + pack(">QqI", start, at, transaction)) == Begin(at, start, transaction)
    assert decode(b"C\0" + pack(">QQq", start, end, at)) == Commit(end)


@given(
    OIDS,
    st.lists(
        st.builds(
            LoggedColumn,
            st.text(st.characters(exclude_characters="\0", codec="utf-8")),
            OIDS,
            st.integers(-1, 2**31 - 1),
            st.booleans(),
        )
    ),
    st.sampled_from("dnfi"),
)
def test_a_table(oid: int, columns: list[LoggedColumn], identity: str) -> None:
    listed = b"".join(
        bytes([of_key]) + name.encode() + b"\0" + pack(">Ii", kind, modifier)
        for name, kind, modifier, of_key in columns
    )
    said = b"R" + pack(">I", oid) + f"públic\0tāble\0{identity}".encode() + pack(">H", len(columns)) + listed
    assert decode(said) == Relation(oid, "públic", "tāble", tuple(columns), identity == "f")


@given(st.lists(OIDS))
def test_truncated_tables(oids: list[int]) -> None:
    assert decode(b"T" + pack(f">IB{len(oids)}I", len(oids), 0, *oids)) == Truncate(tuple(oids))


def test_messages_that_say_nothing_of_rows() -> None:
    assert [decode(kind + b"anything") for kind in (b"Y", b"O", b"M")] == [None] * 3


@given(NUMBERS)
def test_a_place_in_the_log_as_postgresql_writes_it(place: int) -> None:
    assert number(lsn(place)) == place
