"""An operation becomes one row of COPY, in binary or as text, and PostgreSQL reads it as it was."""

from collections.abc import Callable, Iterator
from struct import pack

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concord.databases.postgresql.entries import staged_row
from concord.databases.postgresql.log.pgoutput import NULL
from tests.conftest import Database

TEXTS = st.none() | st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
TABLE = 'CREATE TEMPORARY TABLE staged (seq bigint, operation "char", kept varbit, c0 text, c1 text, o0 text)'


def sent(value: str | None) -> bytes:
    if value is None:
        return NULL
    return pack(">I", len(value.encode())) + value.encode()


@pytest.fixture
def connection(database: Callable[[], Database]) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database().uri, autocommit=True) as made:
        made.execute(TABLE)
        yield made


@given(rows=st.lists(st.tuples(TEXTS, TEXTS, st.booleans(), TEXTS), max_size=5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_both_forms_are_read_alike(
    connection: psycopg.Connection[tuple[object, ...]],
    rows: list[tuple[str | None, str | None, bool, str | None]],
) -> None:
    """A value that was not sent is NULL, and its bit is set."""
    expected = []
    for form, head, tail in (("binary", staged_row.SIGNATURE, staged_row.TRAILER), ("text", b"", b"")):
        make = staged_row.binary if form == "binary" else staged_row.text
        cut = [
            make(seq, b"U", [sent(first), None if kept else sent(other)], [sent(before)])
            for seq, (first, other, kept, before) in enumerate(rows)
        ]
        connection.execute("TRUNCATE staged")
        with connection.cursor().copy(f"COPY staged FROM STDIN (FORMAT {form})".encode()) as copy:
            copy.write(head + b"".join(cut) + tail)
        found = connection.execute("SELECT seq, operation, kept::text, c0, c1, o0 FROM staged ORDER BY seq")
        expected.append(found.fetchall())
    wanted = [
        (seq, "U", "01" if kept else None, first, None if kept else other, before)
        for seq, (first, other, kept, before) in enumerate(rows)
    ]
    assert expected == [wanted, wanted]
