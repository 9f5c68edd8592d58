"""The marks of calls in the log: what stands between the two of a carried call stays at the publisher."""

from typing import cast

import pytest

from concord.databases.postgresql.calls.marks import Marks
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.messages.errors import EntryRefused
from concord.values.identifier import parse_table_name

ROWS, CALLS = 0, 1
#: No mark depends on what a table is.
NO_TABLE = cast("Table", None)


def marks(*carried: str) -> Marks:
    tables = (
        PublishedTable("public.account", NO_TABLE, ()),
        PublishedTable("calls", NO_TABLE, (), kind=Kind.CALLS),
    )
    return Marks(Published(tables, carried=tuple(map(parse_table_name, carried))))


def call(schema: bytes = b"public", name: bytes = b"opens") -> tuple[bytes | None, ...]:
    """A mark as the log has it: each value behind four bytes of its length."""
    return (b"0001" + b"1", b"0006" + schema, b"0005" + name)


def test_a_call_that_is_carried_begins_and_its_rows_are_passed_over_until_it_ends() -> None:
    log = marks("public.opens")
    assert [
        log.passes_over(ROWS, b"I", call()),
        log.passes_over(CALLS, b"I", call()),
        log.passes_over(ROWS, b"I", call()),
        log.passes_over(CALLS, b"D", None),
        log.passes_over(ROWS, b"U", call()),
    ] == [False, False, True, True, False]


@pytest.mark.parametrize("other", [call(name=b"other"), call(schema=b"other"), call(name=b"opensx")])
def test_a_call_that_is_not_carried_is_no_mark_and_its_rows_travel(other: tuple[bytes | None, ...]) -> None:
    log = marks("public.opens")
    assert log.passes_over(CALLS, b"I", other)
    assert not log.passes_over(ROWS, b"I", other)
    log.ended(1)


def test_an_entry_that_ends_inside_of_a_call_is_refused() -> None:
    log = marks("public.opens")
    log.passes_over(CALLS, b"I", call())
    with pytest.raises(EntryRefused, match=r"^entry 5: a call begins in it and does not end"):
        log.ended(5)


def test_a_replication_without_calls_passes_over_nothing() -> None:
    log = Marks(Published((PublishedTable("public.account", NO_TABLE, ()),)))
    assert not log.passes_over(ROWS, b"I", call())
    log.ended(1)
