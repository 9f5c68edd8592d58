"""Applications edit rows between staging and commit: the transaction begins again, and the edit is judged like any
other version."""

import psycopg
import pytest

from tests.given.application_session import Application, application_wrote, link_waits, wait_until
from tests.given.at_step import At
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
FIRST = made("capetown", 10)
UPDATE = "UPDATE item SET token = 'meanwhile' WHERE id = 1"


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    site = written_site(ITEM)
    for key in (1, 2):
        site.keep({"id": key, "token": "here"}, FIRST)
    return site


def update(key: int, *, at: int = 20) -> Change:
    return Change({"id": key, "token": "there"}, made("london", at, FIRST))


def tokens(target: WrittenSite) -> dict[int, str]:
    return dict(target.site.rows("SELECT id, token FROM item ORDER BY id"))


#: An edit after the verdict; then the rows, and the type of the conflict.
EDITS = {
    "an update": (UPDATE, update(1), {1: "meanwhile", 2: "there"}, "update_update"),
    "a delete": ("DELETE FROM item WHERE id = 1", update(1), {2: "there"}, "update_delete"),
    "an update of a row that is to be deleted": (
        UPDATE,
        Change({"id": 1}, made("london", 20, FIRST, deleted=True)),
        {1: "meanwhile", 2: "there"},
        "delete_update",
    ),
    "an insert of the same key": (
        "INSERT INTO item VALUES (3, 'meanwhile')",
        Change({"id": 3, "token": "there"}, made("london", 20, born=True)),
        {1: "here", 2: "there", 3: "meanwhile"},
        "insert_insert",
    ),
}


@pytest.mark.parametrize("step", ["lock", "conflicts", "base"])
@pytest.mark.parametrize(("edit", "change", "rows", "kind"), EDITS.values(), ids=EDITS)
def test_an_edit_at_any_step_is_judged_before_its_row_is_written(
    target: WrittenSite, edit: str, change: Change, rows: dict[int, str], kind: str, step: str
) -> None:
    """The row is never written over unseen (rule 3), and no other row twice."""
    meanwhile = At(step, lambda: target.site.as_application(edit))
    written = target.write(change, update(2), progress=meanwhile)
    assert meanwhile.reached == (1 if step == "lock" else 2), "the transaction began again"
    assert written.counts == {"acquired": 2, "applied": 1, "lost": 1, "conflicts": 1}
    assert tokens(target) == rows
    (conflict,) = target.conflicts()
    assert (conflict["type"], conflict["winner_site"], conflict["loser_site"]) == (kind, "capetown", "london")
    assert (conflict["winner_row"] and conflict["winner_row"]["token"]) == rows.get(int(conflict["key"][0]))


def test_an_edit_of_another_row_is_in_nobodys_way(target: WrittenSite) -> None:
    meanwhile = At("base", lambda: target.site.as_application(UPDATE))
    assert target.write(update(2), progress=meanwhile).counts == {"acquired": 1, "applied": 1}
    assert meanwhile.reached == 1
    assert tokens(target) == {1: "meanwhile", 2: "there"}


def test_what_the_site_learns_of_a_version_meanwhile_is_part_of_the_verdict(target: WrittenSite) -> None:
    """Another link has united a vector: the version is the same, and knows more."""
    learnt = """UPDATE concord."public.item" SET vector = vector || '{"oslo#1": [1, 0]}',
                position = pg_current_xact_id() WHERE id = 1"""
    meanwhile = At("base", lambda: target.site.run(learnt))
    target.write(update(1), progress=meanwhile)
    assert meanwhile.reached == 2
    known = target.known(1)
    assert known is not None
    assert known.version.vector["oslo#1"] == (1, 0)
    assert known.received_from is None, "it is no longer the version that came in"


def test_a_conflict_whose_row_is_edited_while_the_link_waits_for_it_is_judged_by_the_new_version(
    target: WrittenSite,
) -> None:
    """In the first try conflicts are judged before they are locked. The log has the version that won in the end."""
    conflict = Change({"id": 1, "token": "there"}, made("london", 5))
    application = Application(target.site, UPDATE, lambda: wait_until(lambda: link_waits(target.site)))
    judging = At("judge", lambda: application.start_until(application_wrote))
    target.write(conflict, progress=judging)
    application.join()
    assert application.error is None
    assert judging.reached == 2
    (entry,) = target.conflicts()
    assert (entry["winner_row"]["token"], entry["loser_row"]["token"]) == ("meanwhile", "there")
    known = target.known(1)
    assert known is not None
    assert entry["winner_version"]["changed_at"] == known.version.changed_at > FIRST.changed_at


def test_a_conflict_whose_row_was_only_locked_by_another_session_is_decided_at_once(
    target: WrittenSite,
) -> None:
    conflict = Change({"id": 1, "token": "there"}, made("london", 20))
    version = """SELECT FROM concord."public.item" WHERE id = 1 FOR UPDATE NOWAIT"""
    application = Application(
        target.site,
        "SELECT FROM item WHERE id = 1 FOR UPDATE",
        lambda: wait_until(lambda: link_waits(target.site)),
        lambda: target.site.run(version),
    )
    holds = (
        "SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation"
        " WHERE relname = 'item' AND mode = 'RowShareLock'"
    )
    judging = At("judge", lambda: application.start_until(lambda site: bool(site.rows(holds))))
    assert target.write(conflict, progress=judging).counts["conflicts"] == 1
    application.join()
    assert application.error is None, "the link holds no version while it waits for the row"
    assert judging.reached == 1


def test_the_second_try_locks_every_row_before_it_judges(target: WrittenSite) -> None:
    """Else applications that are faster could go on being faster."""
    faster = At("conflicts", lambda: target.site.as_application(UPDATE))

    def edit() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            target.site.rows("SELECT FROM item WHERE id = 2 FOR UPDATE NOWAIT")
        insert = ("SET LOCAL lock_timeout = '20ms'", "INSERT INTO item (id, token) VALUES (3, 'mine')")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            target.site.as_application(*insert)

    again = At("judge", edit, occurrence=2)
    target.keep({"id": 3}, made("capetown", 10, deleted=True))
    back = Change({"id": 3, "token": "there"}, made("london", 20, made("capetown", 10, deleted=True)))
    target.write(update(1), update(2), back, progress=lambda step: (faster(step), again(step)))
    assert (faster.reached, again.reached) == (2, 2)
    assert tokens(target) == {1: "meanwhile", 2: "there", 3: "there"}


def test_the_first_try_locks_no_row_that_simply_applies(target: WrittenSite) -> None:
    """A pass over every row would be in vain: the write of the version finds the edit."""

    def lock() -> None:
        target.site.rows("SELECT FROM item WHERE id = 1 FOR UPDATE NOWAIT")

    judged = At("conflicts", lock)
    target.write(update(1), progress=judged)
    assert judged.reached == 1
