"""Edits that come while a link looks at the log, or commit after it has looked: none is lost or overwritten unseen."""

from typing import Any

import pytest

from concord.databases.postgresql.write import unregistered
from concord.jobs.site import Capture
from concord.messages.errors import HistoryLost
from tests.given.at_step import At
from tests.given.fixtures import MakePair
from tests.given.logged_pair import BOOK, SHADOW, at_rest, insert, retitle, title
from tests.given.two_sites import Pair, carried

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("capture", [Capture.LOG], indirect=True, ids=str)]


class EachTime(At):
    """Acts whenever a link takes the step."""

    def __call__(self, step: str) -> None:
        self.reached += step == self.step
        if step == self.step:
            self.act()


@pytest.fixture
def sites(pair: MakePair) -> Pair:
    return pair(*BOOK)


def test_no_trigger_stands_anywhere_and_an_edit_arrives(sites: Pair) -> None:
    # S1-32 b
    retitle(sites.london, 1, "from london")
    sites.london.as_application("DELETE FROM book WHERE id = 2", "UPDATE book SET id = 20 WHERE id = 3")
    insert(sites.london, 11, "born in london")
    assert carried(sites.run("forward")).applied == 5
    assert [title(sites.capetown, book) for book in (1, 2, 3, 20, 11)] == [
        "from london",
        None,
        None,
        "book 3",
        "born in london",
    ]
    assert sites.run("reverse").total("acquired") == 0, "what a link writes is no edit"
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'book'::regclass"
    assert sites.london.value(triggers) == sites.capetown.value(triggers) == 0
    assert at_rest(sites)


def test_an_edit_that_nobody_has_registered_is_not_overwritten(sites: Pair) -> None:
    """The essential race: the target's user edits after both ends were registered, before the row is locked."""
    retitle(sites.london, 1, "from london")
    sites.run("forward", at=At("lock", lambda: retitle(sites.capetown, 1, "meanwhile")))
    (conflict,) = sites.conflicts()
    assert (conflict["type"], conflict["winner_row"]["title"], conflict["loser_row"]["title"]) == (
        "update_update",
        "meanwhile",
        "from london",
    )
    assert at_rest(sites)
    assert title(sites.london, 1) == title(sites.capetown, 1) == "meanwhile"
    assert len(sites.conflicts()) == 1


def test_a_row_that_has_a_version_already_is_not_overwritten_either(sites: Pair) -> None:
    retitle(sites.capetown, 1, "known everywhere")
    assert at_rest(sites)
    retitle(sites.london, 1, "from london")
    sites.run("forward", at=At("lock", lambda: retitle(sites.capetown, 1, "meanwhile")))
    assert at_rest(sites)
    assert title(sites.london, 1) == "meanwhile"
    assert [each["loser_row"]["title"] for each in sites.conflicts()] == ["from london"]


def test_a_row_inserted_after_the_keys_were_locked_is_not_overwritten(sites: Pair) -> None:
    """Nothing locks a key that does not exist: the insert wins the race, and the link tries again."""
    insert(sites.london, 11, "from london")
    sites.run("forward", at=At("judge", lambda: insert(sites.capetown, 11, "meanwhile")))
    (conflict,) = sites.conflicts()
    assert (conflict["type"], conflict["loser_row"]["title"]) == ("insert_insert", "from london")
    assert at_rest(sites)
    assert title(sites.london, 11) == "meanwhile"


def test_a_row_inserted_before_its_key_is_locked_is_not_overwritten(sites: Pair) -> None:
    insert(sites.london, 11, "from london")
    sites.run("forward", at=At("lock", lambda: insert(sites.capetown, 11, "meanwhile")))
    assert at_rest(sites)
    assert title(sites.london, 11) == "meanwhile"
    assert [each["type"] for each in sites.conflicts()] == ["insert_insert"]


def test_a_delete_that_nobody_has_registered_is_not_undone_unseen(sites: Pair) -> None:
    """Of a row that had no version, its absence alone would not tell that anybody had deleted it."""
    retitle(sites.london, 1, "from london")
    sites.run(
        "forward", at=At("lock", lambda: sites.capetown.as_application("DELETE FROM book WHERE id = 1"))
    )
    assert at_rest(sites)
    assert [each["type"] for each in sites.conflicts()] == ["update_delete"]
    assert title(sites.london, 1) is None


def test_a_row_that_comes_where_a_delete_arrives_stays(sites: Pair) -> None:
    sites.london.as_application("DELETE FROM book WHERE id = 1")
    sites.capetown.as_application("DELETE FROM book WHERE id = 1")
    sites.run("forward", at=At("judge", lambda: insert(sites.capetown, 1, "again")))
    assert at_rest(sites)
    assert title(sites.london, 1) == "again"


def test_a_row_that_comes_where_both_have_deleted_one_makes_no_conflict(sites: Pair) -> None:
    for site in sites.sites:
        site.as_application("DELETE FROM book WHERE id = 1")
    sites.run("forward", at=At("judge", lambda: insert(sites.capetown, 1, "again")))
    assert at_rest(sites)
    assert title(sites.london, 1) == "again"
    assert sites.conflicts() == []


def test_a_delete_that_wins_is_logged_without_the_row_that_comes_in_its_place(sites: Pair) -> None:
    """F07: the log holds what each version held. The row that comes has another version, of its own registration."""
    retitle(sites.london, 1, "from london")
    sites.capetown.as_application("DELETE FROM book WHERE id = 1")
    sites.run("forward", at=At("conflicts", lambda: insert(sites.capetown, 1, "again")))
    (conflict,) = sites.conflicts()
    assert (conflict["type"], conflict["winner_version"]["deleted"]) == ("update_delete", True)
    assert (conflict["winner_row"], conflict["loser_row"]["title"]) == (None, "from london")
    assert at_rest(sites)
    assert title(sites.london, 1) == "again"
    assert len(sites.conflicts()) == 1


def test_a_row_that_comes_and_goes_around_its_registration_is_judged_as_gone(
    sites: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link has found nothing to lock, and registers then: it hears of the insert, and not of the delete."""
    insert(sites.london, 11, "from london")
    retitle(sites.london, 1, "from london")
    register = unregistered.register

    def around(*arguments: Any) -> None:
        monkeypatch.undo()
        insert(sites.capetown, 11, "meanwhile")
        register(*arguments)
        sites.capetown.as_application("DELETE FROM book WHERE id = 11")

    monkeypatch.setattr(unregistered, "register", around)
    sites.run("forward", at=At("lock", lambda: retitle(sites.capetown, 1, "the first try is in vain")))
    conflicts = {each["key"][0]: each for each in sites.conflicts()}
    assert conflicts["11"]["type"] == "update_delete", "decided by the delete, not by the row before it"
    assert at_rest(sites)
    assert title(sites.london, 11) is None
    assert len(sites.conflicts()) == 2


def test_a_row_that_comes_while_a_delete_is_written_counts_as_not_registered(sites: Pair) -> None:
    """Another synchronization of the site would send it under the version of the delete, or write over it."""
    sites.london.as_application("DELETE FROM book WHERE id = 1")
    assert at_rest(sites)
    insert(sites.london, 1, "for a moment")
    sites.london.as_application("DELETE FROM book WHERE id = 1")
    assert carried(sites.run("forward", at=At("shadow", lambda: insert(sites.capetown, 1, "again")))).applied
    assert sites.capetown.value(f"SELECT concord_written_by FROM {SHADOW} WHERE id = 1") is None
    assert at_rest(sites)
    assert title(sites.london, 1) == "again"


def test_an_edit_after_its_row_was_registered_travels_under_its_own_version(sites: Pair) -> None:
    """No version holds one content here and another there: the run leaves the row to the next one."""
    retitle(sites.london, 1, "registered")
    report = sites.run("forward", at=At("cut", lambda: retitle(sites.london, 1, "a moment later")))
    assert report.total("acquired") == 0
    sites.run("forward")
    assert title(sites.capetown, 1) == "a moment later"
    assert sites.conflicts() == []
    assert at_rest(sites)


def test_a_row_deleted_after_it_was_registered_goes_under_its_own_version(sites: Pair) -> None:
    retitle(sites.london, 1, "registered")
    gone = At("cut", lambda: sites.london.as_application("DELETE FROM book WHERE id = 1"))
    assert sites.run("forward", at=gone).total("acquired") == 0
    assert at_rest(sites)
    assert title(sites.capetown, 1) is None


def test_a_transaction_that_commits_late_arrives(sites: Pair) -> None:
    """T02: open when the log was read, committed after it, behind others that were read."""
    with sites.london.log_in("postgres", autocommit=False) as late:
        late.execute("UPDATE book SET title = 'late' WHERE id = 1")
        retitle(sites.london, 2, "at once")
        sites.settle()
        assert (title(sites.capetown, 1), title(sites.capetown, 2)) == ("book 1", "at once")
    assert at_rest(sites)
    assert title(sites.capetown, 1) == "late"


def test_a_rolled_back_transaction_and_savepoint_never_travel(sites: Pair) -> None:
    with sites.london.log_in("postgres", autocommit=False) as undone:
        undone.execute("UPDATE book SET title = 'undone' WHERE id = 1")
        undone.rollback()
    with sites.london.log_in("postgres") as kept:
        kept.execute("BEGIN; UPDATE book SET title = 'before' WHERE id = 2; SAVEPOINT s")
        kept.execute("UPDATE book SET title = 'undone' WHERE id = 3; ROLLBACK TO s")
        kept.execute("UPDATE book SET title = 'after' WHERE id = 4; COMMIT")
    assert carried(sites.run("forward")).acquired == 2
    assert [title(sites.capetown, book) for book in (1, 2, 3, 4)] == ["book 1", "before", "book 3", "after"]


def test_what_a_part_of_a_transaction_wrote_is_known_by_the_whole(sites: Pair) -> None:
    """A base row names the part that wrote it, and the log the whole. The part is open as long as the whole."""
    with sites.london.log_in("postgres") as whole:
        whole.execute("BEGIN; UPDATE book SET title = 'whole' WHERE id = 2; SAVEPOINT s")
        whole.execute("UPDATE book SET title = 'part' WHERE id = 1; RELEASE s")
        retitle(sites.london, 3, "meanwhile")
        sites.settle()
        assert title(sites.capetown, 1) == "book 1"
        whole.execute("COMMIT")
    assert at_rest(sites)
    assert [title(sites.capetown, book) for book in (1, 2, 3)] == ["part", "whole", "meanwhile"]


def test_an_edit_within_a_part_that_the_target_has_not_registered_is_not_overwritten(sites: Pair) -> None:
    def edit() -> None:
        with sites.capetown.log_in("postgres") as user:
            user.execute("BEGIN; SAVEPOINT s; UPDATE book SET title = 'part' WHERE id = 1; RELEASE s; COMMIT")

    retitle(sites.london, 1, "from london")
    sites.run("forward", at=At("lock", edit))
    assert at_rest(sites)
    assert [each["loser_row"]["title"] for each in sites.conflicts()] == ["from london"]


def test_a_row_that_is_edited_at_each_try_is_written_at_last(sites: Pair) -> None:
    """Nothing starves: from the second try on, the log is read while the row is locked."""
    retitle(sites.london, 1, "from london")
    edits = iter(range(100))

    def edit() -> None:
        retitle(sites.capetown, 1, f"edit {next(edits)}")

    sites.run("forward", at=EachTime("lock", edit))
    assert at_rest(sites)
    assert next(edits) <= 4
    assert title(sites.london, 1) == title(sites.capetown, 1)
    assert [each["loser_row"]["title"] for each in sites.conflicts()] == ["from london"]


def test_a_log_that_is_lost_while_rows_are_locked_stops_the_link(sites: Pair) -> None:
    """Nobody could tell whether the locked row has an edit: it is not written over."""

    def edit() -> None:
        retitle(sites.capetown, 1, "meanwhile")
        sites.capetown.drop_slots()

    retitle(sites.london, 1, "from london")
    with pytest.raises(HistoryLost, match="is gone, and with it the log"):
        sites.run("forward", at=At("lock", edit))
    assert title(sites.capetown, 1) == "meanwhile"
