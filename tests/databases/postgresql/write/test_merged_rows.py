"""Rows that a resolver makes of two: their version, the rows that they leave, and both losers in the log."""

import json
import time

import pytest

from concord.rules.policy import Policy
from concord.versions.conflict import conflict_id
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, json_version, made

STOCK = "CREATE TABLE stock (id int PRIMARY KEY, seats int, price numeric(8,2), title text)"
COMMON = made("oslo", 5)
OURS, THEIRS = made("capetown", 10, COMMON), made("london", 20, COMMON)


def row(seats: int, price: str, title: str) -> dict[str, object]:
    return {"id": 1, "seats": seats, "price": price, "title": title}


BEFORE = row(100, "10.00", "old")


@pytest.fixture
def averaging(written_site: MakeWritten) -> WrittenSite:
    return written_site(STOCK, policy=Policy(resolvers=("average(price)",)))


@pytest.fixture
def adding(written_site: MakeWritten) -> WrittenSite:
    return written_site(STOCK, policy=Policy(resolvers=("additive(seats)", "merge_columns")))


def image(values: dict[str, object]) -> dict[str, object]:
    return {name: str(value) for name, value in values.items()}


def keep(target: WrittenSite, values: dict[str, object], version: RowVersion) -> None:
    """With the row that was there before the local edit."""
    target.keep(values, version, base_row=json.dumps(image(BEFORE)), base_version=json_version(COMMON))


def test_the_new_row_is_a_version_of_the_site_that_writes_it_and_has_seen_both(
    averaging: WrittenSite,
) -> None:
    """Rule 5: derived from two, later than all that both have seen."""
    averaging.keep(row(100, "10.00", "here"), OURS)
    before = time.time_ns() // 1000
    written = averaging.write(Change(row(100, "20.00", "there"), THEIRS))
    assert written.counts == {"acquired": 1, "applied": 1, "merged": 1, "conflicts": 1}
    known = averaging.known(1)
    assert known is not None
    version = known.version
    assert (version.origin, version.derived, version.deleted) == ("capetown#1", 1, False)
    assert before <= version.changed_at <= time.time_ns() // 1000
    assert version.includes(OURS)
    assert version.includes(THEIRS)
    assert known.received_from is None, "every site is told, also the source"
    found = averaging.row(1)
    assert found is not None
    assert found["price"] == 15


def test_a_merge_is_stamped_later_than_what_it_has_seen_however_slow_the_clock_is(
    averaging: WrittenSite,
) -> None:
    far = 10**18
    averaging.keep(row(1, "1", ""), made("capetown", far))
    averaging.write(Change(row(1, "3", ""), made("london", 20)))
    known = averaging.known(1)
    assert known is not None
    assert known.version.changed_at == far + 1


def test_both_versions_lose_to_the_new_one_each_in_an_entry_of_its_own(averaging: WrittenSite) -> None:
    averaging.keep(row(100, "10.00", "here"), OURS)
    averaging.write(Change(row(100, "20.00", "there"), THEIRS))
    known = averaging.known(1)
    assert known is not None
    found = {each["loser_site"]: each for each in averaging.conflicts()}
    assert found.keys() == {"capetown", "london"}
    for site, version, title in (("capetown", OURS, "here"), ("london", THEIRS, "there")):
        entry = found[site]
        assert entry["id"] == conflict_id("public.stock", ["1"], known.version, version)
        assert (entry["winner_site"], entry["winner_row"]["price"]) == ("capetown", "15.00")
        assert entry["loser_row"]["title"] == title
        assert entry["resolver"] == "average(price), latest_timestamp", "the title is decided by the next one"


def test_each_side_keeps_what_it_alone_has_changed(adding: WrittenSite) -> None:
    keep(adding, row(97, "10.00", "here"), OURS)
    change = Change(row(110, "12.00", "old"), THEIRS, base=(image(BEFORE), COMMON))
    assert adding.write(change).verdict(1).verdict == "merged"
    assert adding.row(1) == {"id": 1, "seats": 107, "price": 12.0, "title": "here"}


def test_without_a_common_version_the_rest_of_the_chain_decides(adding: WrittenSite) -> None:
    """An image of another version than the two have in common is never used."""
    adding.keep(row(97, "10.00", "here"), OURS)
    strange = made("london", 20, made("oslo", 7))
    change = Change(row(110, "10.00", "old"), strange, base=(image(BEFORE), made("oslo", 7)))
    written = adding.write(change)
    assert written.verdict(1).verdict == "source_wins"
    (entry,) = adding.conflicts()
    assert "the common version is not known" in entry["reason"]


def test_two_that_added_the_same_are_added_up(adding: WrittenSite) -> None:
    """100 + 5 + 5, although the rows are equal."""
    keep(adding, row(105, "10.00", "old"), OURS)
    change = Change(row(105, "10.00", "old"), THEIRS, base=(image(BEFORE), COMMON))
    assert adding.write(change).verdict(1).verdict == "merged"
    found = adding.row(1)
    assert found is not None
    assert found["seats"] == 110


def test_the_row_that_came_in_is_kept_for_the_next_merge(adding: WrittenSite) -> None:
    """The other end has it, and edits it."""
    keep(adding, row(97, "10.00", "old"), OURS)
    adding.write(Change(row(110, "10.00", "old"), THEIRS, base=(image(BEFORE), COMMON)))
    [(base, version)] = adding.site.rows('SELECT base_row, base_version FROM concord."public.stock"')
    assert base["seats"] == "110"
    assert version["origin"] == "london#1"


@pytest.mark.parametrize("target_wins", [True, False])
def test_a_delete_is_merged_with_nothing(averaging: WrittenSite, target_wins: bool) -> None:
    averaging.keep(row(1, "1", ""), made("capetown", 30 if target_wins else 10))
    written = averaging.write(Change({"id": 1}, made("london", 20, deleted=True)))
    assert written.verdict(1).verdict == ("target_wins" if target_wins else "source_wins")


def test_a_merge_beside_rows_that_simply_apply_changes_no_other(averaging: WrittenSite) -> None:
    averaging.keep(row(1, "10.00", "here"), OURS)
    second = {**row(2, "5.00", "there"), "id": 2}
    written = averaging.write(
        Change(row(1, "20.00", "there"), THEIRS), Change(second, made("london", 20, born=True))
    )
    assert written.counts == {"acquired": 2, "applied": 2, "merged": 1, "conflicts": 1}
    assert averaging.row(2) == {"id": 2, "seats": 2, "price": 5.0, "title": "there"}
    known = averaging.known(2)
    assert known is not None
    assert known.version == made("london", 20, born=True)
