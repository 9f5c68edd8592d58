"""The keys that a log tells of, and the transactions that are news: each key once touched, none of a link's."""

from struct import pack

from hypothesis import given
from hypothesis import strategies as st

from concord.databases.postgresql.log.shown import Shown
from concord.databases.postgresql.log.touched import Touched, TouchedTable

NOTHING, ALL = Shown(1, 1, frozenset()), Shown(100, 100, frozenset())
BOOK, SHELF = 7, 8
_IDS = st.integers(3, 2**40)


@given(xmax=_IDS, apart=st.integers(-(2**31), 2**31 - 1))
def test_an_id_of_32_bits_is_the_one_that_is_next_to_the_snapshot(xmax: int, apart: int) -> None:
    """Ids begin again after four thousand million transactions; a log reaches back no half of that."""
    whole = xmax + apart
    assert Shown(xmax, xmax, frozenset()).whole(whole & 0xFFFFFFFF) == whole


@given(xmin=_IDS, open_ones=st.frozensets(st.integers(0, 20), max_size=5), asked=st.integers(-5, 30))
def test_a_snapshot_shows_what_ended_before_it_and_nothing_else(
    xmin: int, open_ones: frozenset[int], asked: int
) -> None:
    """A second form of `pg_visible_in_snapshot`."""
    listed = ",".join(str(xmin + each) for each in sorted(open_ones))
    shown = Shown.of(f"{xmin}:{xmin + 21}:{listed}")
    assert shown.shows(xmin + asked) == (asked < 0 or (asked < 21 and asked not in open_ones))


def begin(transaction: int, commit: int = 0, at: int = 5) -> bytes:
    return b"B" + pack(">QqI", commit, at, transaction)


def relation(oid: int, *columns: str) -> bytes:
    named = b"".join(b"\x01" + column.encode() + b"\x00" + pack(">Ii", 23, -1) for column in columns)
    return b"R" + pack(">I", oid) + b"public\x00t\x00d" + pack(">H", len(columns)) + named


def row(*values: int | None) -> bytes:
    told = b"".join(b"n" if each is None else b"b" + pack(">ii", 4, each) for each in values)
    return pack(">H", len(values)) + told


def insert(oid: int, *values: int) -> bytes:
    return b"I" + pack(">I", oid) + b"N" + row(*values)


def update(oid: int, new: tuple[int, ...], old: tuple[int, ...] = ()) -> bytes:
    return b"U" + pack(">I", oid) + (b"K" + row(*old) if old else b"") + b"N" + row(*new)


def delete(oid: int, *values: int | None) -> bytes:
    return b"D" + pack(">I", oid) + b"K" + row(*values)


def truncate(*oids: int) -> bytes:
    return b"T" + pack(f">IB{len(oids)}I", len(oids), 0, *oids)


def reading(*messages: bytes, key: tuple[str, ...] = ("id",), **given_: object) -> tuple[Touched, bytes]:
    taken: list[bytes] = []
    book = TouchedTable("book", key, NOTHING, taken.append)
    shelf = TouchedTable("shelf", ("id",), ALL, taken.append)
    fields: dict[str, object] = {"shown": ALL, "before": NOTHING, "applied": ()} | given_
    touched = Touched({BOOK: book, SHELF: shelf}, **fields)  # type: ignore[arg-type]
    touched.read([relation(BOOK, "id"), relation(SHELF, "id"), *messages])
    return touched, b"".join(taken)


def keys(copied: bytes) -> list[tuple[int, bool]]:
    """Key, and whether it was inserted, of each row of one COPY."""
    rows, at = [], 19
    while copied[at : at + 2] not in (b"\xff\xff", b""):
        rows.append((int.from_bytes(copied[at + 35 : at + 39]), copied[at + 30] == 1))
        at += 39
    return rows


def test_each_operation_touches_its_key_and_a_key_change_touches_two() -> None:
    # S1-29
    _, copied = reading(
        begin(10), insert(BOOK, 1), update(BOOK, (2,)), update(BOOK, (4,), old=(3,)), delete(BOOK, 5)
    )
    assert keys(copied) == [(1, True), (2, False), (3, False), (4, True), (5, False)]


def test_only_what_the_snapshot_shows_and_the_last_did_not_is_news() -> None:
    shown, before = Shown(20, 30, frozenset({25})), Shown(12, 15, frozenset({13}))
    messages = [each for n in (11, 12, 13, 14, 16, 25, 29, 30) for each in (begin(n, n), insert(BOOK, n))]
    touched, copied = reading(*messages, shown=shown, before=before, applied={16})
    assert [key for key, _ in keys(copied)] == [13, 29]
    assert touched.held == 25, "the log is kept from the first that is not shown yet"


def test_what_triggers_have_told_of_a_table_is_no_news_of_it() -> None:
    touched, copied = reading(begin(10), insert(BOOK, 1), insert(SHELF, 2))
    assert [key for key, _ in keys(copied)] == [1]
    assert touched.tables[SHELF].touched == 0


def test_a_truncate_a_missing_key_and_another_identity_lose_the_table_and_no_other() -> None:
    for wrong in (truncate(BOOK), delete(BOOK, None), relation(BOOK, "title")):
        touched, _ = reading(begin(10), wrong)
        assert touched.tables[BOOK].lost
        assert not touched.tables[SHELF].lost


def test_a_truncate_of_a_transaction_that_is_no_news_loses_nothing() -> None:
    touched, _ = reading(begin(10), truncate(BOOK), before=ALL)
    assert not touched.tables[BOOK].lost


def test_the_key_is_taken_in_its_own_order_whatever_the_tables_is() -> None:
    swapped = relation(BOOK, "b", "a")
    _, copied = reading(swapped, begin(10), b"I" + pack(">I", BOOK) + b"N" + row(1, 2), key=("a", "b"))
    assert copied[19 + 35 : 19 + 39] == pack(">i", 2)
    assert copied[19 + 43 : 19 + 47] == pack(">i", 1)
