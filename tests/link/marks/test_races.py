"""Edits that come while a link looks at marks, or commit after it has looked: none is lost or overwritten unseen."""

import time
from typing import Any

import psycopg
import pytest

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows import marked_edits
from concord.rules.policy import Policy
from tests.given.at_step import At
from tests.given.fixtures import MakeShops
from tests.given.marked_sites import (
    MARKS,
    SHADOW,
    quiet,
)

SIDES = ("winner_row", "loser_row")
pytestmark = pytest.mark.spark


def test_an_edit_that_nobody_has_registered_is_not_overwritten(shops: MakeShops) -> None:
    """The essential race: the target's application edits after both ends were registered, before the row is
    locked."""
    both = shops()
    both.london.update(1, "from london")
    both.pair.run("forward", at=At("lock", lambda: both.capetown.update(1, "meanwhile")))
    (conflict,) = both.pair.conflicts()
    assert (conflict["type"], conflict["winner_row"]["note"], conflict["loser_row"]["note"]) == (
        "update_update",
        "meanwhile",
        "from london",
    )
    both.pair.settle()
    assert both.london.row(1) == both.capetown.row(1) == ("meanwhile", False)
    assert len(both.pair.conflicts()) == 1
    quiet(both)


def test_a_row_inserted_after_the_keys_were_locked_is_not_overwritten(shops: MakeShops) -> None:
    """Nothing locks a key that does not exist: the insert wins the race, and the link tries again."""
    both = shops()
    both.london.insert(11, "from london")
    both.pair.run("forward", at=At("judge", lambda: both.capetown.insert(11, "meanwhile")))
    (conflict,) = both.pair.conflicts()
    assert (conflict["type"], conflict["loser_row"]["note"]) == ("insert_insert", "from london")
    both.pair.settle()
    assert both.london.row(11) == both.capetown.row(11) == ("meanwhile", False)


def test_a_row_inserted_where_one_was_removed_behind_our_back_is_not_overwritten(shops: MakeShops) -> None:
    """The shadow's memory of the removed row must not be taken for the row that was locked."""
    both = shops()
    both.capetown.site.run("DELETE FROM customer WHERE id = 1")
    both.london.update(1, "from london")
    both.pair.run("forward", at=At("judge", lambda: both.capetown.insert(1, "meanwhile")))
    both.pair.settle()
    assert both.agree
    (conflict,) = both.pair.conflicts()
    assert {conflict[side]["note"] for side in SIDES} == {"from london", "meanwhile"}


def test_a_conflict_is_logged_without_the_row_that_comes_meanwhile(shops: MakeShops) -> None:
    """F07: the version that wins never held it. Its own row was removed behind our back."""
    both = shops()
    both.london.update(1, "from london")
    both.capetown.update(1, "from cape town")
    stop = At("cut", fail)
    with pytest.raises(ConnectionError):
        both.pair.run("reverse", at=stop)  # registered, and not sent
    both.capetown.site.run("DELETE FROM customer WHERE id = 1")
    both.pair.run("forward", at=At("conflicts", lambda: both.capetown.insert(1, "meanwhile")))
    (conflict,) = both.pair.conflicts()
    assert (conflict["winner_site"], conflict["winner_row"]) == ("capetown", None)


def test_a_row_that_is_registered_without_a_lock_is_not_overwritten(
    shops: MakeShops, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the lock and before the registration. Its application may edit it again before it is written."""
    both = shops(policy=Policy(resolvers=("earliest_timestamp",)))
    both.london.insert(11, "from london")
    register, locked = marked_edits.register_staged, []

    def after_it_came(*arguments: Any) -> None:
        monkeypatch.undo()
        both.capetown.insert(11, "meanwhile")
        register(*arguments)

    def edit() -> None:
        with pytest.raises(psycopg.errors.LockNotAvailable) as refused:
            both.capetown.site.run("SET lock_timeout = '50ms'", both.capetown.updating(11, "unseen"))
        locked.append(refused)

    monkeypatch.setattr(marked_edits, "register_staged", after_it_came)
    both.pair.run("forward", at=At("base", edit))
    assert locked, "the link has begun again, and locked it"
    (conflict,) = both.pair.conflicts()
    assert (conflict["type"], conflict["loser_row"]["note"]) == ("insert_insert", "meanwhile")


def test_an_edit_whose_mark_is_old_is_not_sent_yet_never_overwritten_silently(shops: MakeShops) -> None:
    """F21: the application breaks its promise. Its row stands in the log when it loses."""
    both = shops()
    both.capetown.site.as_application(
        "UPDATE customer SET note = 'unmarked' WHERE id = 1",
        "INSERT INTO customer VALUES (11, 'imported', '2020-01-01', false)",
    )
    both.pair.run("reverse")
    assert both.london.row(1) == ("common", False)
    both.london.update(1, "from london")
    both.london.insert(11, "from london")
    both.pair.settle()
    assert both.agree
    losers = {(row["type"], row["loser_row"]["note"]) for row in both.pair.conflicts()}
    assert losers == {("update_update", "unmarked"), ("insert_insert", "imported")}


def test_an_edit_after_its_row_was_registered_travels_under_its_own_version(shops: MakeShops) -> None:
    """No version holds one content here and another there: the run leaves the row to the next one."""
    both = shops()
    both.london.update(1, "registered")
    report = both.pair.run("forward", at=At("cut", lambda: both.london.update(1, "a moment later")))
    assert report.total("acquired") == 0
    both.pair.run("forward")
    assert both.capetown.row(1) == ("a moment later", False)
    assert both.pair.conflicts() == []


def test_an_edit_without_a_mark_does_not_hold_back_the_marked_one_before_it(shops: MakeShops) -> None:
    """The row was registered, the run failed, and the row waits: it is looked at again, whatever its mark says."""
    both = shops(marks=MARKS.model_copy(update={"tolerance": 0.2}))
    both.london.update(1, "marked")
    with pytest.raises(ConnectionError):
        both.pair.run("forward", at=At("cut", fail))
    time.sleep(1.5)
    both.pair.run("reverse")
    both.london.site.as_application("UPDATE customer SET note = 'unmarked' WHERE id = 1")
    both.pair.run("forward")
    assert both.capetown.row(1) == ("unmarked", False)


def fail() -> None:
    raise ConnectionError


def test_a_transaction_that_commits_late_arrives(shops: MakeShops) -> None:
    """T02, S4-074: marked before the last look, committed after it."""
    both = shops()
    with both.london.site.log_in("postgres", autocommit=False) as late:
        late.execute(both.london.updating(1, "late").encode())
        both.pair.settle()
        assert both.capetown.row(1) == ("common", False)
    both.pair.settle()
    assert both.capetown.row(1) == ("late", False)


def test_the_last_look_does_not_pass_a_transaction_that_is_still_writing(shops: MakeShops) -> None:
    """T02, the second remedy: a writer that outlasts the tolerance is waited for, and forgotten when it ends."""
    both = shops(marks=MARKS.model_copy(update={"tolerance": 0.2}))
    look = "SELECT registered FROM concord.replicated_table"
    both.pair.settle()
    with both.london.site.log_in("postgres", autocommit=False) as long:
        long.execute(both.london.updating(1, "after a long while").encode())
        both.pair.run("forward")
        held = both.london.site.value(look)
        time.sleep(1.5)
        both.pair.run("forward")
        assert both.london.site.value(look) == held
    both.pair.run("forward")
    assert both.capetown.row(1) == ("after a long while", False)
    assert both.london.site.value(look) > held


def test_what_was_being_written_while_the_sites_were_declared_equal_arrives(shops: MakeShops) -> None:
    """T02: marked longer ago than the tolerance, written at once, committed after the first look."""
    both = shops()
    for site in both.pair.sites:
        site.run(
            "DELETE FROM concord.link_state",
            f"DELETE FROM {SHADOW}",
            "UPDATE concord.replicated_table SET registered = NULL",
        )
    with both.london.site.log_in("postgres", autocommit=False) as late:
        late.execute("UPDATE customer SET note = 'late', updated_at = now() - interval '1 hour' WHERE id = 1")
        declare_equal(both.pair.job())
        both.pair.settle()
        assert both.capetown.row(1) == ("common", False)
    both.pair.settle()
    assert both.capetown.row(1) == ("late", False)
    assert both.london.site.value("SELECT registered FROM concord.replicated_table") > 0


def test_a_clock_that_was_set_back_does_not_hide_what_is_edited_from_then_on(shops: MakeShops) -> None:
    both = shops()
    look = "SELECT registered FROM concord.replicated_table"
    both.london.site.run(
        "UPDATE concord.replicated_table SET registered = registered + 3600 * 1000000::bigint"
    )
    ahead = both.london.site.value(look)
    both.london.update(1, "after the clock was set back")
    both.pair.run("forward")
    assert both.capetown.row(1) == ("after the clock was set back", False)
    assert both.london.site.value(look) < ahead
