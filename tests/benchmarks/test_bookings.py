"""The edits that the benchmark measures: as many as asked, of the three kinds, and never a row twice."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from benchmarks.bookings import Edits, creation
from tests.conftest import Database

ROWS = 1_000


@pytest.fixture
def bookings(database: Callable[[], Database]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database().uri, autocommit=True) as connection:
        for statement in creation(ROWS):
            connection.execute(statement.encode())
        yield connection


def test_a_row_is_some_200_bytes(bookings: psycopg.Connection[Any]) -> None:
    row = bookings.execute("SELECT avg(pg_column_size(b)) FROM public.bookings b").fetchone()
    assert row is not None
    assert 180 <= row[0] <= 260


@pytest.mark.parametrize("count", [10, 100, 300])
def test_eight_of_ten_edits_are_updates_one_an_insert_and_one_a_delete(
    bookings: psycopg.Connection[Any], count: int
) -> None:
    kinds = bookings.execute(f"SELECT kind, count(*) FROM ({Edits(ROWS, count).keys}) k GROUP BY 1".encode())
    tenth = count // 10
    assert dict(kinds.fetchall()) == {"update": 8 * tenth, "insert": tenth, "delete": tenth}


def test_no_row_is_edited_twice_and_only_inserts_are_new(bookings: psycopg.Connection[Any]) -> None:
    sets = [Edits(ROWS, 300, before) for before in (0, 300, 600)]
    keys = [row for edits in sets for row in bookings.execute(edits.keys.encode()).fetchall()]
    assert len({key for key, _ in keys}) == 900
    assert all((key > ROWS) == (kind == "insert") for key, kind in keys)


def test_edits_of_a_part_stay_in_it(bookings: psycopg.Connection[Any]) -> None:
    keys = dict(bookings.execute(Edits(ROWS, 100, 20, first=501, part=200).keys.encode()).fetchall())
    assert len(keys) == 100
    assert all((kind == "insert") == (key > ROWS) for key, kind in keys.items())
    assert all(key > ROWS or 501 <= key <= 700 for key in keys)


def test_the_users_do_what_the_list_says(bookings: psycopg.Connection[Any]) -> None:
    before = dict(bookings.execute("SELECT id, b::text FROM public.bookings b").fetchall())
    edits = Edits(ROWS, 100)
    for statement in edits.statements:
        bookings.execute(statement.encode())
    after = dict(bookings.execute("SELECT id, b::text FROM public.bookings b").fetchall())

    listed = dict(bookings.execute("SELECT id, kind FROM public.edited").fetchall())
    found = dict.fromkeys(before.keys() - after.keys(), "delete")
    found |= dict.fromkeys(after.keys() - before.keys(), "insert")
    found |= {key: "update" for key in before.keys() & after.keys() if before[key] != after[key]}
    assert found == listed


def test_the_digest_sees_one_changed_value_of_an_edited_row(bookings: psycopg.Connection[Any]) -> None:
    edits = Edits(ROWS, 100)
    for statement in edits.statements:
        bookings.execute(statement.encode())
    before = bookings.execute(edits.digest.encode()).fetchone()
    bookings.execute(
        "UPDATE public.bookings SET price = price + 0.01"
        " WHERE id = (SELECT min(id) FROM public.edited WHERE kind = 'update')"
    )
    assert before is not None
    assert before[0] == 90
    assert bookings.execute(edits.digest.encode()).fetchone() != before
