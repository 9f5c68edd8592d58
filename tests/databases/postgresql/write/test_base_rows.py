"""The rows of a table as the write leaves them: values that move, columns that no link carries, forms of a key."""

import pytest

from tests.given.at_step import At
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

SEAT = "CREATE TABLE seat (id int PRIMARY KEY, code text UNIQUE, name text, desk text DEFAULT 'none')"
FIRST = made("capetown", 10)
THEIRS = made("london", 20, FIRST)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    site = written_site(SEAT)
    for key, code in ((1, "a"), (2, "b"), (3, "c")):
        site.keep({"id": key, "code": code, "name": "here", "desk": f"desk {key}"}, FIRST)
    return site


def seat(key: int, code: str) -> Change:
    return Change({"id": key, "code": code, "name": "there", "desk": "new"}, THEIRS)


def codes(target: WrittenSite) -> dict[int, str]:
    return dict(target.site.rows("SELECT id, code FROM seat ORDER BY id"))


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_values_that_two_rows_swap_arrive(target: WrittenSite, order: tuple[int, int]) -> None:
    """F38: the database refuses the first try, whichever row comes first."""
    swap = {1: seat(1, "b"), 2: seat(2, "a")}
    again = At("base", lambda: None)
    written = target.write(*(swap[key] for key in order), progress=again)
    assert written.counts == {"acquired": 2, "applied": 2}
    assert again.reached == 2
    assert codes(target) == {1: "b", 2: "a", 3: "c"}


def test_values_that_go_round_in_a_circle_arrive(target: WrittenSite) -> None:
    assert target.write(seat(1, "b"), seat(2, "c"), seat(3, "a")).counts == {"acquired": 3, "applied": 3}
    assert codes(target) == {1: "b", 2: "c", 3: "a"}


def test_a_value_of_a_row_that_is_deleted_is_free_at_once(target: WrittenSite) -> None:
    """The row that takes it has the lower key, and would come first."""
    again = At("base", lambda: None)
    gone = Change({"id": 2}, made("london", 20, FIRST, deleted=True))
    assert target.write(seat(1, "b"), gone, progress=again).counts == {"acquired": 2, "applied": 2}
    assert again.reached == 1
    assert codes(target) == {1: "b", 3: "c"}


@pytest.fixture
def partly(written_site: MakeWritten) -> WrittenSite:
    """The column `desk` is each site's own."""
    site = written_site(SEAT, columns=("id", "code", "name"))
    for key, code in ((1, "a"), (2, "b")):
        site.keep({"id": key, "code": code, "name": "here", "desk": f"desk {key}"}, FIRST)
    return site


def test_a_column_that_no_link_carries_stays_as_it_is(partly: WrittenSite) -> None:
    partly.write(Change({"id": 1, "code": "a", "name": "there"}, THEIRS))
    assert partly.row(1) == {"id": 1, "code": "a", "name": "there", "desk": "desk 1"}


def test_it_stays_also_where_unique_values_move(partly: WrittenSite) -> None:
    """The rows are taken out and put back: nobody else knows the value of that column."""
    partly.write(
        Change({"id": 1, "code": "b", "name": "x"}, THEIRS),
        Change({"id": 2, "code": "a", "name": "y"}, THEIRS),
    )
    assert partly.site.rows("SELECT id, code, desk FROM seat ORDER BY id") == [
        (1, "b", "desk 1"),
        (2, "a", "desk 2"),
    ]


def test_a_new_row_gets_the_sites_own_default_there(partly: WrittenSite) -> None:
    partly.write(Change({"id": 9, "code": "z", "name": "new"}, made("london", 20, born=True)))
    assert partly.row(9) == {"id": 9, "code": "z", "name": "new", "desk": "none"}


def test_a_key_in_another_form_is_the_same_key_and_takes_the_form_that_came(
    written_site: MakeWritten,
) -> None:
    """F69: 1.0 and 1.00 are one key, and read as its user wrote it."""
    target = written_site("CREATE TABLE price (amount numeric PRIMARY KEY, token text)")
    target.keep({"amount": "1.0", "token": "here"}, FIRST)
    assert target.write(Change({"amount": "1.00", "token": "there"}, THEIRS)).counts["applied"] == 1
    assert target.site.rows("SELECT amount::text, token FROM price") == [("1.00", "there")]


@pytest.mark.parametrize("generated", ["ALWAYS", "BY DEFAULT"])
def test_a_key_that_the_site_generates_is_written_as_it_came(
    written_site: MakeWritten, generated: str
) -> None:
    target = written_site(
        f"CREATE TABLE numbered (id int GENERATED {generated} AS IDENTITY PRIMARY KEY, token text)"
    )
    target.write(Change({"id": 77, "token": "there"}, made("london", 20, born=True)))
    assert target.row(77) == {"id": 77, "token": "there"}


def test_a_column_that_the_site_computes_is_computed(written_site: MakeWritten) -> None:
    ddl = "CREATE TABLE doubled (id int PRIMARY KEY, one int, two int GENERATED ALWAYS AS (2 * one) STORED)"
    target = written_site(ddl)
    target.write(Change({"id": 1, "one": 4}, made("london", 20, born=True)))
    assert target.row(1) == {"id": 1, "one": 4, "two": 8}


def test_a_table_of_nothing_but_its_key_is_inserted_and_deleted(written_site: MakeWritten) -> None:
    target = written_site("CREATE TABLE bare (a int, b text, PRIMARY KEY (a, b))")
    born = made("london", 20, born=True)
    target.write(Change({"a": 1, "b": "x"}, born))
    assert target.row(1, "x") == {"a": 1, "b": "x"}
    target.write(Change({"a": 1, "b": "x"}, made("london", 30, born)))
    assert target.row(1, "x") == {"a": 1, "b": "x"}
    target.write(Change({"a": 1, "b": "x"}, made("london", 40, made("london", 30, born), deleted=True)))
    assert target.row(1, "x") is None
