"""A log that was put back, and written further: is it the one that the subscriber has replayed? Of messages alone."""

from datetime import timedelta
from struct import pack
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from concord.databases.contract.last_entry import LastEntry
from concord.databases.postgresql.log.same_history import is_same
from concord.values.moment import POSTGRESQL

TABLE, LEVEL = 1, 2
OURS = "ours"


class Transaction(NamedTuple):
    """One in the log."""

    number: int
    at: int
    changes: bool  #: a user's table; else Concord's alone
    replayed: bool  #: by the replication itself


def messages(log: list[Transaction], since: int) -> list[bytes]:
    """As the server sends them after a place."""
    told = [_relation(TABLE, "public", "account"), _relation(LEVEL, "concord", "replay")]
    for each in log:
        if each.number > since:
            told.append(pack(">cQqI", b"B", each.number - 1, each.at, 1))
            if each.replayed:
                told.append(pack(">cI", b"U", LEVEL) + b"N" + _row(OURS))
            if each.changes:
                told.append(pack(">cI", b"I", TABLE) + b"N" + _row("1"))
            told.append(pack(">cBQQq", b"C", 0, each.number - 1, each.number, each.at))
    return told


def _relation(oid: int, schema: str, name: str) -> bytes:
    column = b"\0id\0" + pack(">Ii", 25, -1)
    return pack(">cI", b"R", oid) + f"{schema}\0{name}\0".encode() + b"d" + pack(">H", 1) + column


def _row(value: str) -> bytes:
    return pack(">HcI", 1, b"t", len(value)) + value.encode()


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Transaction], int, int]:
    """Transactions in the order of their places, how many of them a copy of the files has, and the next one's time."""
    log, place = list[Transaction](), 0
    for at in range(draw(st.integers(1, 8))):
        place += draw(st.integers(2, 4))
        log.append(Transaction(place, at, changes=draw(st.booleans()), replayed=draw(st.booleans())))
    return log, draw(st.integers(0, len(log))), len(log)


@given(logs(), st.data())
def test_no_transaction_is_skipped_and_no_log_is_refused_that_has_lost_none(
    made: tuple[list[Transaction], int, int], data: st.DataObject
) -> None:
    """New transactions have the places of those that were lost."""
    log, copied, now = made
    entries = [each for each in log if each.changes and not each.replayed]
    if not entries:
        return
    last, level = entries[-1], log[-1].number + data.draw(st.integers(0, 40))
    kept, place = log[:copied], log[copied - 1].number if copied else 0
    confirmed = data.draw(st.sampled_from([0, *(each.number for each in kept)]))
    after = list[Transaction]()
    for at in range(now, now + data.draw(st.integers(0, 8))):
        place += data.draw(st.integers(2, 4))
        after.append(
            Transaction(place, at, changes=data.draw(st.booleans()), replayed=data.draw(st.booleans()))
        )
    skipped = [each for each in after if each.number <= level and each.changes and not each.replayed]
    asked = LastEntry(last.number, POSTGRESQL + timedelta(microseconds=last.at))
    found = is_same(messages([*kept, *after], confirmed), OURS, asked, confirmed, level)
    assert found == (last in kept and not skipped)


@given(logs(), st.data())
def test_after_a_copy_every_entry_up_to_the_level_is_one_of_another_history(
    made: tuple[list[Transaction], int, int], data: st.DataObject
) -> None:
    """Nothing was replayed since. The copy has all that the log holds from before it."""
    log, _, _ = made
    copy, confirmed = (data.draw(st.integers(0, log[-1].number)) for _ in "cc")
    level = copy + data.draw(st.integers(0, 40))
    skipped = [
        each
        for each in log
        if max(copy, confirmed) < each.number <= level and each.changes and not each.replayed
    ]
    asked = LastEntry(copy, None)
    assert is_same(messages(log, confirmed), OURS, asked, confirmed, level) == (not skipped)
