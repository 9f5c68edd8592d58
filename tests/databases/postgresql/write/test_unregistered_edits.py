"""Where the log reports edits, a row may have one that is not registered yet: none is written over unseen (S1-32)."""

from collections.abc import Iterator

import pytest

from tests.given.at_step import At
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
FIRST = made("capetown", 10)


@pytest.fixture
def target(written_site: MakeWritten) -> Iterator[WrittenSite]:
    site = written_site(ITEM, by_log=True)
    for key in (1, 2):
        site.keep({"id": key, "token": "here"}, FIRST)
    yield site
    site.site.drop_slots()  # it would keep the log of the whole server


def update(key: int) -> Change:
    return Change({"id": key, "token": "there"}, made("london", 20, FIRST))


def insert(key: int) -> Change:
    return Change({"id": key, "token": "there"}, made("london", 20, born=True))


def tokens(target: WrittenSite) -> dict[int, str]:
    return dict(target.site.rows("SELECT id, token FROM item ORDER BY id"))


def test_rows_whose_edits_are_registered_are_written_at_once(target: WrittenSite) -> None:
    locks = At("lock", lambda: None)
    assert target.write(update(1), insert(3), progress=locks).counts == {"acquired": 2, "applied": 2}
    assert locks.reached == 1
    assert tokens(target) == {1: "there", 2: "here", 3: "there"}


EDITS = {
    "an update": ("UPDATE item SET token = 'edited' WHERE id = 1", update(1), "edited", "update_update"),
    "a delete": ("DELETE FROM item WHERE id = 1", update(1), None, "update_delete"),
    "an insert": ("INSERT INTO item VALUES (3, 'edited')", insert(3), "edited", "insert_insert"),
}


@pytest.mark.parametrize("step", ["hold_fence", "lock"])
@pytest.mark.parametrize(("edit", "change", "token", "kind"), EDITS.values(), ids=EDITS)
def test_an_edit_that_is_not_registered_is_registered_and_judged(
    target: WrittenSite, edit: str, change: Change, token: str | None, kind: str, step: str
) -> None:
    editing = At(step, lambda: target.site.as_application(edit))
    written = target.write(change, update(2), progress=editing)
    assert editing.reached == 2, "the transaction began again, and registered first"
    assert written.counts == {"acquired": 2, "applied": 1, "lost": 1, "conflicts": 1}
    key = change.row["id"]
    assert tokens(target).get(key) == token
    (entry,) = target.conflicts()
    assert (entry["type"], entry["winner_site"]) == (kind, "capetown")


def test_a_delete_of_a_row_whose_writer_is_not_known_is_found_as_well(target: WrittenSite) -> None:
    """Triggers captured its last edit, and named no writer."""
    target.keep({"id": 5, "token": "here"}, FIRST, concord_written_by=None)
    edit = "DELETE FROM item WHERE id = 5"
    deleting = At("hold_fence", lambda: target.site.as_application(edit))
    assert target.write(update(5), progress=deleting).counts == {"acquired": 1, "lost": 1, "conflicts": 1}
    assert deleting.reached == 2
    assert 5 not in tokens(target)


def test_a_row_written_by_a_link_is_nobodys_edit(target: WrittenSite) -> None:
    """Its writer is remembered with its version."""
    first = update(1)
    target.write(first)
    locks = At("lock", lambda: None)
    again = Change({"id": 1, "token": "again"}, made("london", 30, first.version))
    assert target.write(again, progress=locks).counts == {"acquired": 1, "applied": 1}
    assert locks.reached == 1
    target.site.register()
    known = target.known(1)
    assert known is not None
    assert known.version == again.version


def test_a_row_that_comes_after_its_key_was_locked_is_not_deleted_with_it(target: WrittenSite) -> None:
    """Nothing locks a key that does not exist: a delete of both sites takes no row that comes meanwhile."""
    gone = made("capetown", 10, deleted=True)
    target.keep({"id": 3}, gone)
    arrives = At("base", lambda: target.site.as_application("INSERT INTO item VALUES (3, 'meanwhile')"))
    written = target.write(Change({"id": 3}, made("london", 20, gone, deleted=True)), progress=arrives)
    assert written.counts == {"acquired": 1, "applied": 1}
    assert tokens(target)[3] == "meanwhile"
