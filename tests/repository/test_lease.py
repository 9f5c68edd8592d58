"""One run at a time per synchronization, and every lease under a greater epoch than all before it."""

import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from concord.messages.errors import LeaseHeld, LeaseLost
from concord.repository.lease import Lease, acquire, release, renew
from concord.repository.migration import migrate
from concord.repository.opening import open_repository
from concord.repository.status import synchronizations
from tests.repository.records import MINUTE, NOON, PAIR, leased


def test_a_free_lease_is_taken_under_the_time_in_milliseconds(repository: Engine) -> None:
    lease = leased(repository)
    assert lease == Lease(PAIR, "run_1", int(NOON.timestamp() * 1000), NOON, NOON + 10 * MINUTE)


def test_a_held_lease_is_refused_with_its_holder_its_beginning_and_its_end(repository: Engine) -> None:
    leased(repository)
    with pytest.raises(LeaseHeld) as held:
        leased(repository, NOON + MINUTE, owner="run_2")
    assert held.value.transient
    assert held.value.facts["owner"] == "run_1"
    assert held.value.facts["acquired_at"] == NOON
    assert held.value.facts["expires_at"] == NOON + 10 * MINUTE
    assert "run by run_1 since 2026-03-01 12:00:00" in str(held.value)
    assert "2026-03-01 12:10:00" in str(held.value)


def test_leases_of_different_synchronizations_do_not_meet(repository: Engine) -> None:
    first = leased(repository, owner="run_1")
    second = leased(repository, owner="run_2", synchronization="london_oslo")
    for lease in (first, second):
        assert renew(repository, lease, 10 * MINUTE, NOON + MINUTE).expires_at == NOON + 11 * MINUTE
    release(repository, first)
    with pytest.raises(LeaseHeld, match="run_2"):
        leased(repository, NOON + MINUTE, owner="run_3", synchronization="london_oslo")


def test_a_retried_task_of_the_same_owner_takes_a_new_epoch(repository: Engine) -> None:
    first = leased(repository)
    second = leased(repository)
    assert second.epoch == first.epoch + 1


def test_an_expired_lease_is_taken_over_under_a_greater_epoch(repository: Engine) -> None:
    first = leased(repository)
    second = leased(repository, first.expires_at, owner="run_2")
    assert second.epoch > first.epoch


def test_the_lease_of_a_holder_that_has_ended_is_taken_before_it_expires(repository: Engine) -> None:
    ended = leased(repository)
    now = NOON + MINUTE
    taken = acquire(repository, PAIR, "run_2", 10 * MINUTE, now, ended=ended.epoch)
    assert taken.epoch > ended.epoch
    with pytest.raises(LeaseLost):
        renew(repository, ended, MINUTE, now)


def test_a_holder_that_took_the_lease_again_is_not_taken_for_the_one_that_ended(repository: Engine) -> None:
    ended = leased(repository)
    leased(repository)
    with pytest.raises(LeaseHeld):
        acquire(repository, PAIR, "run_2", 10 * MINUTE, NOON + MINUTE, ended=ended.epoch)


def test_a_lease_holds_until_the_last_moment_before_it_expires(repository: Engine) -> None:
    first = leased(repository)
    with pytest.raises(LeaseHeld):
        leased(repository, first.expires_at - timedelta(microseconds=1), owner="run_2")


def test_a_clock_that_was_set_back_still_gives_a_greater_epoch(repository: Engine) -> None:
    first = leased(repository)
    release(repository, first)
    assert leased(repository, NOON - timedelta(days=365)).epoch == first.epoch + 1


def test_a_rebuilt_repository_passes_what_the_sites_remember_even_if_the_clock_was_set_back(
    repository: Engine,
) -> None:
    # F64
    lease = acquire(repository, PAIR, "run_1", MINUTE, NOON, newest_known=2**62)
    assert lease.epoch == 2**62 + 1


def test_a_renewed_lease_ends_later_under_the_same_epoch(repository: Engine) -> None:
    first = leased(repository)
    renewed = renew(repository, first, 10 * MINUTE, NOON + 9 * MINUTE)
    assert (renewed.epoch, renewed.acquired_at) == (first.epoch, first.acquired_at)
    with pytest.raises(LeaseHeld):
        leased(repository, first.expires_at, owner="run_2")
    leased(repository, NOON + 19 * MINUTE, owner="run_2")


def test_an_expired_lease_that_nobody_took_can_be_renewed(repository: Engine) -> None:
    first = leased(repository)
    assert renew(repository, first, MINUTE, NOON + 60 * MINUTE).expires_at == NOON + 61 * MINUTE


def test_a_lease_that_another_run_took_cannot_be_renewed(repository: Engine) -> None:
    first = leased(repository)
    second = leased(repository, first.expires_at, owner="run_2")
    with pytest.raises(LeaseLost, match=f"the newest is {second.epoch}, taken by run_2") as lost:
        renew(repository, first, MINUTE, first.expires_at)
    assert not lost.value.transient


def test_a_released_lease_is_free_at_once(repository: Engine) -> None:
    assert release(repository, leased(repository))
    leased(repository, owner="run_2")


def test_releasing_a_lease_of_another_run_changes_nothing_and_says_so(repository: Engine) -> None:
    first = leased(repository)
    second = leased(repository, first.expires_at, owner="run_2")
    assert not release(repository, first)
    (now,) = synchronizations(repository)
    assert (now.owner, now.epoch, now.lease_expires_at) == ("run_2", second.epoch, second.expires_at)


def test_an_older_attempt_of_the_same_owner_does_not_release_the_newer_one(repository: Engine) -> None:
    # F58
    first, second = leased(repository), leased(repository)
    assert not release(repository, first)
    assert release(repository, second)


def test_a_lease_released_twice_is_released_once(repository: Engine) -> None:
    lease = leased(repository)
    assert [release(repository, lease), release(repository, lease)] == [True, False]


@pytest.mark.parametrize("before", ["free", "expired"])
def test_of_eight_that_reach_for_a_lease_at_once_exactly_one_gets_it(repository: Engine, before: str) -> None:
    # F63
    if before == "expired":
        leased(repository, NOON - 60 * MINUTE, owner="gone")
    outcomes: list[Lease | LeaseHeld] = []
    together = threading.Barrier(8)

    def reach(owner: str) -> None:
        together.wait()
        try:
            outcomes.append(leased(repository, owner=owner))
        except LeaseHeld as held:
            outcomes.append(held)

    threads = [threading.Thread(target=reach, args=(f"run_{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [outcome for outcome in outcomes if isinstance(outcome, Lease)]
    losers = [outcome for outcome in outcomes if isinstance(outcome, LeaseHeld)]
    assert len(winners) == 1
    assert [loser.facts["owner"] for loser in losers] == [winners[0].owner] * 7


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite repository to copy."""
    file = tmp_path_factory.mktemp("empty") / "repository.db"
    migrate(open_repository(f"sqlite:///{file}"))
    return file


def rebuild(empty: Path, file: Path) -> Engine:
    for ending in ("", "-wal", "-shm"):
        file.with_name(file.name + ending).unlink(missing_ok=True)
    shutil.copy(empty, file)
    return open_repository(f"sqlite:///{file}")


LOSE, RELEASE = "lose the repository", "release"
ACTS = st.sampled_from(["run_1", "run_2", RELEASE, LOSE])


def epochs(empty: Path, file: Path, history: list[tuple[str, int]], *, ask_sites: bool) -> list[int]:
    """The epochs handed out over a history of (what happens, milliseconds that the clock moves before)."""
    engine, now, lease = rebuild(empty, file), NOON, None
    handed_out: list[int] = []
    for act, milliseconds in history:
        now += timedelta(milliseconds=milliseconds)
        if act == LOSE:
            engine = rebuild(empty, file)
        elif act == RELEASE:
            _ = lease and release(engine, lease)
        else:
            known = max(handed_out, default=0) if ask_sites else 0
            try:
                lease = acquire(engine, PAIR, act, timedelta(milliseconds=20), now, newest_known=known)
            except LeaseHeld:
                continue
            handed_out.append(lease.epoch)
    return handed_out


STEPS = st.lists(st.tuples(ACTS, st.integers(1, 50)), max_size=20)
ANY_STEPS = st.lists(st.tuples(ACTS, st.integers(-10_000, 50)), max_size=20)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FEW
@given(history=STEPS)
def test_epochs_only_grow_even_when_the_repository_is_lost_again_and_again(
    empty: Path, tmp_path: Path, history: list[tuple[str, int]]
) -> None:
    # F64: the clock moves at least a millisecond between two acquisitions
    handed_out = epochs(empty, tmp_path / "repository.db", history, ask_sites=False)
    assert handed_out == sorted(set(handed_out))


@FEW
@given(history=ANY_STEPS)
def test_epochs_only_grow_whatever_the_clock_does_when_the_sites_are_asked(
    empty: Path, tmp_path: Path, history: list[tuple[str, int]]
) -> None:
    # F64
    handed_out = epochs(empty, tmp_path / "repository.db", history, ask_sites=True)
    assert handed_out == sorted(set(handed_out))
