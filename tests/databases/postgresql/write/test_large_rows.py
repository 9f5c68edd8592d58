"""A row that is too large to be kept in the conflict log waits, under its key. All others are written."""

from typing import Any

import pytest

from concord.databases.postgresql.facts import row_image
from concord.messages.errors import ConstraintViolated
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
LARGEST = 1_000
LONG = "x" * LARGEST
OTHER = {"id": 2, "token": "other"}
SHADOW = 'concord."public.item"'


@pytest.fixture
def target(written_site: MakeWritten, monkeypatch: pytest.MonkeyPatch) -> WrittenSite:
    monkeypatch.setattr(row_image, "LARGEST", LARGEST)
    return written_site(ITEM)


def row(token: str | None, key: int = 1) -> dict[str, Any]:
    return {"id": key, "token": token}


def other() -> Change:
    return Change(OTHER, made("london", 1, born=True))


def reason(site: str, size: int = LARGEST + 48) -> str:
    return (
        f"{site}: the row of public.item (1) has {size:,} bytes, more than the 1,000 that the conflict log keeps of a"
        f" row; shorten or delete it at {site}"
    )


@pytest.mark.parametrize(
    ("here", "there", "holder"),
    [("here", LONG, "london"), (LONG, "there", "capetown"), (LONG, LONG.upper(), "london")],
)
def test_a_conflict_of_a_row_that_is_too_large_waits_and_the_others_are_written(
    target: WrittenSite, here: str, there: str, holder: str
) -> None:
    target.keep(row(here), made("capetown", 10))
    written = target.write(Change(row(there), made("london", 20)), other())
    assert written.counts == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert (target.row(1), target.row(2)) == (row(here), OTHER), "neither row is written over the other"
    assert target.conflicts() == []
    assert target.waiting() == [("quarantined", reason(holder))]


def test_a_large_row_without_a_conflict_is_written(target: WrittenSite) -> None:
    target.keep(row("here"), before := made("london", 10))
    written = target.write(Change(row(LONG), made("london", 20, before)))
    assert written.counts == {"acquired": 1, "applied": 1}
    assert target.row(1) == row(LONG)


def test_the_largest_row_that_is_kept_is_decided_and_logged(target: WrittenSite) -> None:
    kept = "x" * (LARGEST - 48)
    target.keep(row(kept), made("capetown", 10))
    assert target.write(Change(row("there"), made("london", 20))).counts["conflicts"] == 1
    assert [each["loser_row"] for each in target.conflicts()] == [{"id": "1", "token": kept}]


def test_once_the_source_has_shortened_its_row_the_conflict_is_decided(target: WrittenSite) -> None:
    target.keep(row("here"), made("capetown", 10))
    target.write(Change(row(LONG), long := made("london", 20)))
    assert target.write(other()).counts == {"acquired": 1, "applied": 1}, "it is not tried again in vain"
    written = target.write(Change(row("short"), made("london", 30, long)))
    assert written.counts == {"acquired": 1, "applied": 1, "conflicts": 1}
    assert (target.row(1), target.waiting()) == (row("short"), [])
    assert [each["loser_row"] for each in target.conflicts()] == [{"id": "1", "token": "here"}]


def test_once_users_here_have_shortened_their_row_the_conflict_is_decided(target: WrittenSite) -> None:
    target.keep(row(LONG), made("capetown", 10))
    target.write(Change(row("there"), made("london", 20)))
    target.site.as_application("UPDATE item SET token = 'short' WHERE id = 1")
    written = target.write(other())
    assert written.counts["conflicts"] == 1
    assert (target.row(1), target.waiting()) == (row("short"), []), "the later edit wins"
    assert [each["loser_row"] for each in target.conflicts()] == [{"id": "1", "token": "there"}]


def test_a_large_row_that_is_refused_for_another_reason_waits_by_its_key(target: WrittenSite) -> None:
    target.keep(row("here"), made("capetown", 10))
    target.write(Change(row(LONG), made("london", 1 << 61)))
    [(kind, why)] = target.waiting()
    assert kind == "quarantined"
    assert why.startswith("stamped ")
    assert target.site.value("SELECT row_image FROM concord.waiting") == {"id": "1"}


def test_a_write_that_leaves_no_row_waiting_names_the_row(target: WrittenSite) -> None:
    """A repair: a person has asked for all rows of it."""
    target.keep(row("here"), made("capetown", 10))
    with pytest.raises(ConstraintViolated) as refused:
        target.write(Change(row(LONG), made("london", 20)), session=False)
    assert str(refused.value) == f"{reason('london')}; nothing was written"


@pytest.mark.parametrize("private", [False, True])
def test_a_private_key_is_in_no_reason(target: WrittenSite, private: bool) -> None:
    site = target.configured(private={"id": "hashed"}) if private else target
    site.keep(row("here"), made("capetown", 10))
    site.write(Change(row(LONG), made("london", 20)))
    [(_, why)] = site.waiting()
    assert ("(1)" in why) is not private


UNIQUE = "CREATE TABLE code (id int PRIMARY KEY, token text UNIQUE, body text)"


def test_a_large_row_gives_no_unique_value_up(
    written_site: MakeWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be overwritten, or deleted, without a log: the arriving row waits in its place."""
    monkeypatch.setattr(row_image, "LARGEST", LARGEST)
    target = written_site(UNIQUE)
    here = {"id": 1, "token": "taken", "body": LONG}
    target.keep(here, made("capetown", 10))
    arriving = {"id": 2, "token": "taken", "body": "there"}
    free = {"id": 3, "token": "free", "body": LONG}
    written = target.write(
        Change(arriving, made("london", 20, born=True)), Change(free, made("london", 30, born=True))
    )
    assert written.counts == {"acquired": 2, "applied": 1, "quarantined": 1}
    assert [target.row(key) for key in (1, 2, 3)] == [here, None, free]
    assert "code_token_key" in target.waiting()[0][1]


FAMILY = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, body text)",
)


def test_a_large_child_stays_and_the_delete_of_its_parent_waits(
    written_site: MakeWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_image, "LARGEST", LARGEST)
    target = written_site(*FAMILY)
    parent, child = "public.parent", "public.child"
    before = made("london", 1)
    target.keep({"id": 1}, before, table=parent)
    large = {"id": 1, "parent": 1, "body": LONG}
    target.keep(large, made("capetown", 10), table=child)
    gone = Change({"id": 1}, made("london", 20, before, deleted=True), parent)
    written = target.write(gone, Change({"id": 2}, made("london", 30, born=True), parent))
    assert written.reports[parent].quarantined == 1
    assert (target.row(1, table=child), target.row(1, table=parent)) == (large, {"id": 1})
    assert target.row(2, table=parent) == {"id": 2}
    assert target.conflicts() == []
    target.site.as_application("DELETE FROM child")
    target.write(Change({"id": 3}, made("london", 40, born=True), parent))
    assert (target.row(1, table=parent), target.waiting()) == (None, [])
