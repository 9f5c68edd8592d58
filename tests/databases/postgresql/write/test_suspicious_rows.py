"""Versions from the future wait, and rows that come back in answer to each write stop their table."""

import time

import pytest

from concord.messages.errors import RowsOscillate
from concord.rules.brake import Approval, Brakes, Kind
from concord.versions.row_version import RowVersion
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import Change, Outcome, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
HERE, THERE = {"id": 1, "token": "here"}, {"id": 1, "token": "there"}
FIRST = made("capetown", 10)
SECOND = 1_000_000
SKEW = 60


@pytest.fixture
def target(written_site: MakeWritten) -> WrittenSite:
    return written_site(ITEM)


def ahead(seconds: float) -> int:
    return time.time_ns() // 1000 + int(seconds * SECOND)


@pytest.mark.parametrize(("seconds", "waits"), [(SKEW - 20, False), (SKEW + 20, True)])
def test_a_version_waits_that_is_further_ahead_than_clocks_may_be_apart(
    target: WrittenSite, seconds: int, waits: bool
) -> None:
    """F13, F14"""
    target.keep(HERE, FIRST)
    written = target.write(Change(THERE, made("london", ahead(seconds), FIRST)))
    assert written.counts == {"acquired": 1, "quarantined" if waits else "applied": 1}
    assert target.row(1) == (HERE if waits else THERE)
    known = target.known(1)
    assert known is not None
    assert (known.version == FIRST) is waits


def test_the_reason_says_when_the_row_was_stamped(target: WrittenSite) -> None:
    target.write(Change(THERE, made("london", 4070908800 * SECOND, born=True)))
    reason = "stamped 2099-01-01 00:00:00 UTC, more than max_clock_skew (60 s) ahead of the clock here"
    assert target.waiting() == [("quarantined", reason)]


def test_a_version_waits_also_in_a_conflict_that_it_would_win(target: WrittenSite) -> None:
    target.keep(HERE, FIRST)
    assert target.write(Change(THERE, made("london", ahead(200)))).counts["quarantined"] == 1
    assert target.conflicts() == []


def test_a_stamp_is_no_surprise_where_the_rows_own_history_is_later(target: WrittenSite) -> None:
    """Else a row whose stamp was once accepted could never be followed."""
    accepted = made("capetown", ahead(1000))
    target.keep(HERE, accepted)
    assert target.write(Change(THERE, made("london", ahead(1001), accepted))).counts["applied"] == 1


def test_a_version_that_is_known_here_does_not_wait(target: WrittenSite) -> None:
    known = made("london", ahead(1000))
    target.keep(THERE, known)
    assert target.write(Change(THERE, known)).counts == {"acquired": 1, "converged": 1}


def test_a_repair_writes_it(target: WrittenSite) -> None:
    """A person has seen the row."""
    target.keep(HERE, FIRST)
    change = Change(THERE, made("london", ahead(1000), FIRST))
    assert target.write(change, session=False).counts == {"acquired": 1, "applied": 1}


# Rows that come back

MOST = 2


@pytest.fixture
def watched(target: WrittenSite) -> WrittenSite:
    watching = target.configured(brakes=Brakes(oscillation=MOST))
    watching.keep(HERE, FIRST)
    return watching


def present(target: WrittenSite) -> RowVersion:
    known = target.known(1)
    assert known is not None
    return known.version


def answered(target: WrittenSite, number: int, **writing: object) -> Outcome:
    """A program there has answered the row here."""
    row = {"id": 1, "token": f"there {number}"}
    change = Change(row, made("london", time.time_ns() // 1000, present(target)))
    return target.write(change, **writing)  # type: ignore[arg-type]


def answer(target: WrittenSite, number: int) -> None:
    """A program here answers what was written."""
    target.site.as_application(f"UPDATE item SET token = 'here {number}'")


def rebounds(target: WrittenSite) -> int | None:
    found = target.site.value('SELECT rebounds FROM concord."public.item" WHERE id = 1')
    return None if found is None else int(found)


def test_a_row_that_answers_each_write_stops_its_table_and_both_versions_are_named(
    watched: WrittenSite,
) -> None:
    """F95"""
    for number in range(MOST):
        answer(watched, number)
        answered(watched, number)
        assert rebounds(watched) == number + 1
    answer(watched, MOST)
    ours = present(watched)
    with pytest.raises(RowsOscillate) as raised:
        answered(watched, MOST)
    [found] = raised.value.rebounding["public.item"]
    assert (found.key, found.present.dot) == (("1",), ours.dot)
    assert found.arriving.origin == "london#1"
    assert watched.row(1) == {"id": 1, "token": f"here {MOST}"}


def test_rebounds_that_cannot_be_counted_further_begin_anew(target: WrittenSite) -> None:
    """The applier of a site may write any number."""
    target.keep(HERE, FIRST)
    unlimited = target.configured(brakes=Brakes(oscillation=None))
    answer(unlimited, 0)
    answered(unlimited, 0)
    unlimited.site.run('UPDATE concord."public.item" SET rebounds = 2147483647')
    answer(unlimited, 1)
    answered(unlimited, 1)
    assert unlimited.row(1) == {"id": 1, "token": "there 1"}


@pytest.mark.parametrize("how", ["a person approves", "users did it"])
def test_a_stopped_row_may_pass_once(watched: WrittenSite, how: str) -> None:
    for number in range(MOST):
        answer(watched, number)
        answered(watched, number)
    answer(watched, MOST)
    if how == "users did it":
        answered(watched, MOST, released={"public.item"})
    else:
        approval = Approval(table="public.item", kind=Kind.OSCILLATION, up_to=1, since="")
        answered(watched, MOST, job=watched.job(approvals=(approval,)))
    assert watched.row(1) == {"id": 1, "token": f"there {MOST}"}
    assert rebounds(watched) == 1, "a new series begins"


def test_what_nobody_here_has_edited_since_the_last_write_is_no_answer(watched: WrittenSite) -> None:
    answer(watched, 0)
    for number in range(MOST + 2):
        answered(watched, number)
    assert rebounds(watched) is None


def test_an_answer_that_lies_too_many_runs_back_does_not_count(watched: WrittenSite) -> None:
    answer(watched, 0)
    answered(watched, 0)
    for number in range(3):
        watched.write(Change({"id": 2 + number, "token": "other"}, made("london", 20, born=True)))
    answer(watched, 1)
    answered(watched, 1)
    assert rebounds(watched) == 1


@pytest.mark.parametrize("origin", ["oslo", "capetown"])
def test_a_version_that_another_link_brought_is_no_answer_of_a_program_here(
    watched: WrittenSite, origin: str
) -> None:
    """Also where it was made here once, and came back."""
    for number in range(MOST + 1):
        version = made(origin, time.time_ns() // 1000, present(watched))
        watched.site.run("DELETE FROM item")
        watched.keep({"id": 1, "token": f"{origin} {number}"}, version, received_from="oslo")
        answered(watched, number)
    assert rebounds(watched) is None


def test_the_same_row_at_both_sites_rewrites_nothing_and_is_no_oscillation(watched: WrittenSite) -> None:
    for number in range(MOST):
        answer(watched, number)
        answered(watched, number)
    watched.site.as_application("UPDATE item SET token = 'the same'")
    same = Change({"id": 1, "token": "the same"}, made("london", time.time_ns() // 1000, present(watched)))
    assert watched.write(same).counts == {"acquired": 1, "applied": 1}
