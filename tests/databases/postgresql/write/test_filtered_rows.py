"""Rows at the edge of a row filter: what leaves it, enters it, or was never in it (rule 9)."""

import pytest

from concord.tables.row_filter_text import parse_row_filter
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

MEMBER = "CREATE TABLE member (id int PRIMARY KEY, name text, region int)"
INSIDE, OUTSIDE = {"id": 1, "name": "here", "region": 1}, {"id": 1, "name": "here", "region": 2}
OURS = made("capetown", 10)
MOVED = made("london", 20, OURS)


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(MEMBER, where=parse_row_filter("region = 1"))


def left(version: RowVersion, **values: object) -> Change:
    """The row has left the filter at the source."""
    return Change({**OUTSIDE, "name": "there", **values}, version, out_of_scope=True)


def test_a_row_that_leaves_the_filter_is_deleted_and_its_version_is_kept_with_a_mark(
    target: WrittenSite,
) -> None:
    target.keep(INSIDE, OURS)
    assert target.write(left(MOVED)).counts == {"acquired": 1, "applied": 1}
    assert target.row(1) is None
    known = target.known(1)
    assert known is not None
    assert known.version == MOVED, "it is no deleted row"
    assert known.out_of_scope == target.shape().where.fingerprint  # type: ignore[union-attr]


@pytest.mark.parametrize("row", [None, OUTSIDE], ids=["no row", "a row outside"])
def test_a_mark_says_nothing_to_a_site_that_does_not_share_the_row(
    target: WrittenSite, row: dict[str, object] | None
) -> None:
    if row is not None:
        target.keep(row, OURS)
    assert target.write(left(MOVED)).counts == {"acquired": 1, "filtered": 1}
    assert target.row(1) == row
    known = target.known(1)
    assert (known and known.version) == (None if row is None else OURS)


def test_a_delete_leaves_a_row_outside_alone(target: WrittenSite) -> None:
    target.keep(OUTSIDE, OURS)
    change = Change({"id": 1}, made("london", 20, OURS, deleted=True))
    assert target.write(change).counts == {"acquired": 1, "filtered": 1}
    assert target.row(1) == OUTSIDE


def test_a_delete_of_a_row_inside_is_a_delete(target: WrittenSite) -> None:
    target.keep(INSIDE, OURS)
    change = Change({"id": 1}, made("london", 20, OURS, deleted=True))
    assert target.write(change).counts == {"acquired": 1, "applied": 1}
    assert target.row(1) is None


@pytest.mark.parametrize("version", [OURS, None], ids=["with a version", "without one"])
def test_a_row_that_enters_over_one_outside_replaces_it_and_the_log_keeps_it(
    target: WrittenSite, version: RowVersion | None
) -> None:
    """Nobody at the other end has seen it, whatever the versions say."""
    target.keep(OUTSIDE, version)
    written = target.write(Change({**INSIDE, "name": "there"}, made("london", 20, OURS, born=True)))
    assert written.counts == {"acquired": 1, "applied": 1, "conflicts": 1}
    assert target.row(1) == {**INSIDE, "name": "there"}
    (entry,) = target.conflicts()
    assert entry["loser_row"] == {"id": "1", "name": "here", "region": "2"}
    if version is not None:
        assert entry["resolver"] == "row_filter"
        assert entry["reason"] == "replaces a row that was outside the filter here"


def test_a_row_that_comes_back_into_the_filter_is_no_conversion(target: WrittenSite) -> None:
    target.keep(INSIDE, OURS)
    target.write(left(MOVED))
    again = made("london", 30, MOVED)
    assert target.write(Change(INSIDE, again)).counts == {"acquired": 1, "applied": 1}
    assert target.row(1) == INSIDE
    known = target.known(1)
    assert known is not None
    assert (known.version, known.out_of_scope) == (again, None)


def test_a_row_that_enters_the_filter_is_no_conversion(target: WrittenSite) -> None:
    """Unlike in a table without a filter, an update may find no row."""
    assert target.write(Change(INSIDE, made("london", 20))).counts == {"acquired": 1, "applied": 1}


@pytest.mark.parametrize("at", [10, 30])
def test_a_row_that_left_the_filter_of_another_link_stands_in_nobodys_way(
    target: WrittenSite, at: int
) -> None:
    """The mark is that link's: of this link's rows it says nothing."""
    target.keep(INSIDE, made("capetown", at), out_of_scope="of another filter")
    target.site.as_applier("SET LOCAL concord.applying = 'on'", "DELETE FROM public.member")
    assert target.write(Change(INSIDE, made("london", 20))).counts == {"acquired": 1, "applied": 1}
    assert target.conflicts() == []
    assert target.row(1) == INSIDE


def test_a_row_edited_here_that_leaves_the_filter_there_is_a_conflict(target: WrittenSite) -> None:
    target.keep(INSIDE, made("capetown", 10))
    written = target.write(left(made("london", 20)))
    assert written.counts == {"acquired": 1, "applied": 1, "conflicts": 1}
    assert target.row(1) is None
    (entry,) = target.conflicts()
    assert (entry["loser_site"], entry["loser_row"]["name"]) == ("capetown", "here")


def test_what_leaves_with_a_value_that_the_table_here_cannot_hold_leaves_all_the_same(
    written_site: MakeWritten,
) -> None:
    """Of a row that is deleted here the key alone is read."""
    ddl = (
        "CREATE DOMAIN short AS text CHECK (length(VALUE) < 5)",
        "CREATE TABLE named (id int PRIMARY KEY, name short, region int)",
    )
    target = written_site(*ddl, where=parse_row_filter("region = 1"))
    target.keep({"id": 1, "name": "here", "region": 1}, OURS)
    assert target.write(left(MOVED, name="much too long")).counts == {"acquired": 1, "applied": 1}
    assert target.row(1) is None
