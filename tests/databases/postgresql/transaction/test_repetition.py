"""A try that fails is repeated as a whole, or ends the run: by the state that the database reports."""

import time
from collections.abc import Callable
from types import SimpleNamespace

import psycopg
import pytest

from concord.databases.postgresql.facts.connection import Connection, in_transaction, run
from concord.databases.postgresql.rows import link_state, repetition
from concord.databases.postgresql.rows.repetition import RACES, Commit, repeat
from concord.messages.errors import (
    ConcordError,
    ConstraintViolated,
    LeaseLost,
    PrivilegeMissing,
    SiteUnavailable,
    StructureChanged,
    WriteContended,
)
from concord.versions.position import LinkPosition, Session
from tests.given.fixtures import MakeWritten
from tests.given.staged_write import LINK, TARGET, Change, WrittenSite, made

ITEM = "CREATE TABLE item (id int PRIMARY KEY, token text)"
CHANGE = Change({"id": 1, "token": "there"}, made("london", 20, born=True))

DEADLOCK, SERIALIZATION, LOCK_TIMEOUT = "40P01", "40001", "55P03"
UNIQUE, EXCLUSION, CHECK, NO_NUMBER = "23505", "23P01", "23514", "22P02"


@pytest.fixture
def target(written_site: MakeWritten, monkeypatch: pytest.MonkeyPatch) -> WrittenSite:
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: None)
    monkeypatch.setattr(repetition, "time", clock)
    return written_site(ITEM)


class Fails:
    """In each of the first `times` tries the database reports this state, after the base tables are written."""

    def __init__(self, target: WrittenSite, state: str, times: int) -> None:
        self._target, self._state, self._times, self.tries = target, state, times, 0

    def __call__(self, step: str) -> None:
        self.tries += step == "shadow"
        if step == "shadow" and self.tries <= self._times:
            error = f"RAISE EXCEPTION 'on purpose' USING ERRCODE = '{self._state}'"
            run(self._target.at_hand(), f"DO $$BEGIN {error}; END$$")


@pytest.mark.parametrize("state", [DEADLOCK, SERIALIZATION, LOCK_TIMEOUT])
@pytest.mark.parametrize("times", [1, 2 * RACES])
def test_a_lost_race_repeats_the_whole_transaction(target: WrittenSite, state: str, times: int) -> None:
    """F56: however often; the row is written once."""
    failing = Fails(target, state, times)
    assert target.write(CHANGE, progress=failing).counts == {"acquired": 1, "applied": 1}
    assert failing.tries == times + 1
    assert target.row(1) == CHANGE.row
    assert [each.id for each in target.state().history[1:]] == ["0" * 32], "one session more"


@pytest.mark.parametrize("state", [UNIQUE, EXCLUSION])
def test_a_collision_is_taken_for_a_lost_race_at_first(target: WrittenSite, state: str) -> None:
    failing = Fails(target, state, RACES - 1)
    target.write(CHANGE, progress=failing, job=target.job(max_quarantined=0))
    assert failing.tries == RACES
    assert target.row(1) == CHANGE.row


@pytest.mark.parametrize("state", [UNIQUE, EXCLUSION])
def test_after_so_many_collisions_it_is_one(target: WrittenSite, state: str) -> None:
    failing = Fails(target, state, RACES)
    with pytest.raises(ConstraintViolated, match=r"capetown: on purpose\. Two sites used one value"):
        target.write(CHANGE, progress=failing, job=target.job(max_quarantined=0))
    assert failing.tries == RACES
    assert target.row(1) is None
    assert len(target.state().history) == 1


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (CHECK, ConstraintViolated),
        (NO_NUMBER, ConstraintViolated),
        ("42501", PrivilegeMissing),
        ("53100", SiteUnavailable),
        ("XX000", StructureChanged),  # such as a damaged index: the table stops
        ("58030", ConcordError),
    ],
)
def test_what_no_repetition_repairs_ends_the_run_at_once(
    target: WrittenSite, state: str, error: type[ConcordError]
) -> None:
    failing = Fails(target, state, RACES)
    with pytest.raises(error, match=r"capetown.*: on purpose") as raised:
        target.write(CHANGE, progress=failing, job=target.job(max_quarantined=0))
    assert type(raised.value) is error
    assert failing.tries == 1
    assert target.row(1) is None
    assert target.known(1) is None
    assert len(target.state().history) == 1


@pytest.mark.parametrize("state", [CHECK, UNIQUE])
def test_a_refusal_that_is_about_no_row_ends_the_run_where_rows_may_wait(
    target: WrittenSite, state: str
) -> None:
    """The rehearsal finds nothing to leave out, so the second refusal is the answer."""
    failing = Fails(target, state, 9)
    with pytest.raises(ConstraintViolated, match="on purpose"):
        target.write(CHANGE, progress=failing)
    assert target.row(1) is None
    assert target.waiting() == []


def test_a_lost_race_is_repeated_for_so_long_and_no_longer(
    target: WrittenSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from the end of the first try, which may have been long."""
    now = [0.0]
    monkeypatch.setattr(repetition.time, "monotonic", lambda: now[0])
    failing = Fails(target, DEADLOCK, 99)

    def progress(step: str) -> None:
        now[0] += (1000 if failing.tries == 0 else 50) if step == "judge" else 0
        failing(step)

    with pytest.raises(
        WriteContended, match=r"^public\.item: capetown: on purpose\. The next run tries again"
    ):
        target.write(CHANGE, progress=progress)
    assert failing.tries == 4, "50 and 100 s are within the 120 s, 150 s are not"


def test_a_newer_run_has_taken_the_epoch_before_the_transaction_begins(target: WrittenSite) -> None:
    older, newer = target.job(), target.job()
    staged = target.stage(older, CHANGE)
    link_state.fence(target.at_hand(), older.synchronization, newer.epoch, TARGET)
    with pytest.raises(LeaseLost, match="a newer run of london_capetown has taken over; nothing was written"):
        target.write_staged(older, staged)
    assert target.row(1) is None


def test_nobody_takes_the_epoch_until_the_transaction_ends(target: WrittenSite) -> None:
    taken = "SELECT FROM concord.synchronization FOR UPDATE NOWAIT"
    steps: list[str] = []

    def progress(step: str) -> None:
        if step != "hold_fence":
            steps.append(step)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                target.site.rows(taken)

    target.write(CHANGE, progress=progress)
    assert steps[-1] == "commit"
    assert len(target.site.rows(taken)) == 1


SESSION = Session("f" * 32, "london#1", "capetown#1", 0, LinkPosition("2:2:"))


def loses_its_connection(target: WrittenSite, tries: list[int], *, commits: bool) -> Callable[..., None]:
    """The first try ends with its connection, after its commit or before."""

    def attempt(connection: Connection, *, violations: int) -> None:
        tries.append(violations)
        if len(tries) > 1:
            return
        if commits:
            link_state.remember(connection, LINK, target.state(), SESSION)
        run(connection, "SELECT pg_terminate_backend(pg_backend_pid())")

    return attempt


def test_a_commit_whose_answer_was_lost_is_known_by_its_session(target: WrittenSite) -> None:
    tries: list[int] = []
    repeat(
        Commit(target.at_hand, LINK, SESSION.id, TARGET), loses_its_connection(target, tries, commits=True)
    )
    assert len(tries) == 1


@pytest.mark.parametrize("session", [SESSION.id, None], ids=["not remembered", "without a session"])
def test_a_connection_that_was_lost_before_the_commit_ends_the_run(
    target: WrittenSite, session: str | None
) -> None:
    tries: list[int] = []
    commits = session is None
    with pytest.raises(SiteUnavailable, match="The next run tries again"):
        repeat(
            Commit(target.at_hand, LINK, session, TARGET),
            loses_its_connection(target, tries, commits=commits),
        )
    assert len(tries) == 1


def test_a_connection_that_had_ended_before_is_replaced_once(target: WrittenSite) -> None:
    """Nothing was done on it; a second one that has ended is an answer."""
    tries: list[int] = []

    def attempt(connection: Connection, *, violations: int) -> None:
        with in_transaction(connection):
            tries.append(violations)

    def ended() -> Connection:
        found = target.at_hand()
        found.close()
        return found

    connections = iter([ended(), target.at_hand()])
    repeat(Commit(lambda: next(connections), LINK, SESSION.id, TARGET), attempt)
    assert len(tries) == 1
    with pytest.raises(SiteUnavailable):
        repeat(Commit(ended, LINK, SESSION.id, TARGET), attempt)


def test_rows_that_were_written_without_a_session_move_no_position(target: WrittenSite) -> None:
    """Rule 1: of a repair, and of an initialization."""
    before = target.state().history
    target.write(CHANGE, session=False)
    assert target.state().history == before
    assert target.row(1) == CHANGE.row
