"""A run ends in one of three ways, and only one of them marks the synchronization as done."""

import pytest
from sqlalchemy import Engine, text, update

from concord.jobs.link import Direction
from concord.messages.errors import LeaseLost
from concord.repository.lease import release
from concord.repository.models import RunState, SynchronizationRun
from concord.repository.runs import (
    Scope,
    begin_run,
    complete_run,
    fail_run,
    last_synchronized,
    release_run,
)
from concord.repository.status import RunStatus, last_runs, synchronizations
from concord.values.interval import Interval
from tests.repository.records import DAY, MINUTE, NOON, PAIR, begun, completed, leased


def last_started_at(repository: Engine) -> object:
    (synchronization,) = synchronizations(repository)
    return synchronization.last_started_at


def states(repository: Engine) -> list[str]:
    return [run.state for run in reversed(last_runs(repository))]


def test_a_run_begins_as_running_under_its_lease(repository: Engine) -> None:
    lease = leased(repository, owner="manual__1")
    interval = Interval.between(NOON - MINUTE, NOON)
    scope = Scope(Direction.REVERSE, ["public.flights"], plan_only=True, interval=interval)
    run_id = begin_run(repository, lease, dag_run_id="manual__1", run_type="manual", scope=scope)
    assert last_runs(repository) == [
        RunStatus(
            id=run_id,
            synchronization=PAIR,
            epoch=lease.epoch,
            owner="manual__1",
            dag_run_id="manual__1",
            run_type="manual",
            direction="reverse",
            tables=["public.flights"],
            plan_only=True,
            interval_start=NOON - MINUTE,
            interval_end=NOON,
            started_at=NOON,
            ended_at=None,
            state="running",
            message=None,
        )
    ]


def test_a_completed_run_hands_its_start_time_to_the_synchronization(repository: Engine) -> None:
    # S1-20: the start, not the end
    completed(repository, NOON)
    (run,) = last_runs(repository)
    assert (run.state, run.ended_at) == ("succeeded", NOON + MINUTE)
    assert last_started_at(repository) == NOON


def test_the_last_whole_synchronizations_start_is_read_back_and_is_none_before_the_first(
    repository: Engine,
) -> None:
    # S1-18
    assert last_synchronized(repository, PAIR) is None
    completed(repository, NOON)
    completed(repository, NOON + DAY, Scope(plan_only=True))
    assert last_synchronized(repository, PAIR) == NOON
    assert last_synchronized(repository, "london_oslo") is None


def test_a_failed_run_leaves_the_start_time_of_the_last_completed_one(repository: Engine) -> None:
    # S1-21
    completed(repository, NOON)
    failed = begun(repository, leased(repository, NOON + DAY))
    fail_run(repository, failed, "the forward link failed", NOON + DAY + MINUTE)
    newest = last_runs(repository)[0]
    assert (newest.state, newest.message) == ("failed", "the forward link failed")
    assert newest.ended_at == NOON + DAY + MINUTE
    assert last_started_at(repository) == NOON


@pytest.mark.parametrize(
    "scope",
    [
        Scope(direction=Direction.FORWARD),
        Scope(tables=["public.flights"]),
        Scope(plan_only=True),
        Scope(interval=Interval(start=0, end=1)),
    ],
)
def test_a_run_of_less_than_everything_succeeds_without_marking_the_synchronization(
    repository: Engine, scope: Scope
) -> None:
    completed(repository, NOON, scope)
    assert states(repository) == ["succeeded"]
    assert last_started_at(repository) is None


def test_a_run_completed_twice_is_completed_once(repository: Engine) -> None:
    run_id = completed(repository, NOON)
    begun(repository, leased(repository, NOON + DAY, owner="run_2"))
    complete_run(repository, run_id, NOON + 2 * DAY)
    assert last_runs(repository)[1].ended_at == NOON + MINUTE


def test_a_run_that_another_has_overtaken_cannot_complete(repository: Engine) -> None:
    # F58: attempt 1 stalls, attempt 2 takes over, attempt 1 wakes up
    first = leased(repository)
    stalled = begun(repository, first)
    second = leased(repository, first.expires_at, owner="run_2")
    with pytest.raises(LeaseLost, match=f"the newest is {second.epoch}, taken by run_2"):
        complete_run(repository, stalled, second.acquired_at)
    assert states(repository) == ["running"]
    assert last_started_at(repository) is None


def test_a_run_that_slept_while_a_later_one_completed_leaves_its_time(repository: Engine) -> None:
    """Its next try has a lease of its own. `status --max-lag` would report an age that is none."""
    slept = begun(repository, leased(repository))
    completed(repository, NOON + DAY)
    again = leased(repository, NOON + 2 * DAY)
    with repository.begin() as connection:
        goes_on = update(SynchronizationRun).where(SynchronizationRun.id == slept)
        connection.execute(goes_on.values(epoch=again.epoch, state=RunState.RUNNING))
    complete_run(repository, slept, NOON + 3 * DAY)
    assert last_started_at(repository) == NOON + DAY


def test_a_run_whose_lease_expired_untaken_can_complete(repository: Engine) -> None:
    lease = leased(repository)
    complete_run(repository, begun(repository, lease), lease.expires_at + DAY)
    assert last_started_at(repository) == NOON


def test_a_run_cannot_begin_under_a_lease_that_was_taken_over(repository: Engine) -> None:
    first = leased(repository)
    leased(repository, first.expires_at, owner="run_2")
    with pytest.raises(LeaseLost):
        begun(repository, first)
    assert last_runs(repository) == []


def test_a_new_run_marks_those_before_it_that_never_ended_as_released(repository: Engine) -> None:
    first = leased(repository)
    begun(repository, first)
    second = leased(repository, first.expires_at, owner="run_2")
    begun(repository, second)
    older = last_runs(repository)[1]
    assert (older.state, older.ended_at) == ("released", second.acquired_at)
    assert older.message == (
        f"The lease passed to run_2 (epoch {second.epoch}) before this run reported how it went."
    )
    assert states(repository) == ["released", "running"]


def test_a_new_run_leaves_those_of_other_synchronizations_alone(repository: Engine) -> None:
    begun(repository, leased(repository, synchronization="london_oslo"))
    begun(repository, leased(repository, NOON + MINUTE))
    assert states(repository) == ["running", "running"]


def test_a_run_that_is_given_up_is_released(repository: Engine) -> None:
    run_id = begun(repository, leased(repository))
    release_run(repository, run_id, NOON + MINUTE)
    (run,) = last_runs(repository)
    assert (run.state, run.ended_at) == ("released", NOON + MINUTE)


def test_giving_up_a_run_that_has_ended_changes_nothing(repository: Engine) -> None:
    release_run(repository, completed(repository, NOON), NOON + DAY)
    fail_run(repository, begun(repository, leased(repository, NOON + DAY)), "no", NOON + DAY)
    release_run(repository, last_runs(repository)[0].id, NOON + 2 * DAY)
    assert states(repository) == ["succeeded", "failed"]


def test_a_run_that_succeeded_does_not_fail_afterwards(repository: Engine) -> None:
    fail_run(repository, completed(repository, NOON), "too late", NOON + DAY)
    assert states(repository) == ["succeeded"]


def test_a_run_can_complete_after_its_lease_was_given_back_untaken(repository: Engine) -> None:
    lease = leased(repository)
    run_id = begun(repository, lease)
    release(repository, lease)
    complete_run(repository, run_id, NOON + MINUTE)
    assert states(repository) == ["succeeded"]


def test_a_run_of_a_lost_repository_is_refused_in_words(repository: Engine) -> None:
    # F64
    run_id = begun(repository, leased(repository))
    with repository.begin() as connection:
        connection.execute(text("DELETE FROM synchronization_run"))
    with pytest.raises(LeaseLost, match="start a new run"):
        complete_run(repository, run_id, NOON)
