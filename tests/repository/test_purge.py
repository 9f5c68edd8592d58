"""Old records go, young and needed ones stay, and a dry run says the same without doing it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, select, text

from concord.jobs.link import Direction
from concord.repository.conflicts import collect_conflicts
from concord.repository.models import RunState, SynchronizationRun, Transmission
from concord.repository.purge import PurgeReport, Retention, purge
from concord.repository.runs import WHOLE, Scope, complete_run, fail_run, find_run, release_run
from concord.repository.status import last_runs, transmissions
from concord.repository.transmissions import record_transmission
from concord.values.interval import Interval
from tests.repository.records import DAY, MINUTE, NOON, PAIR, begun, completed, conflict, leased, report

MONTH = Retention(conflicts=30 * DAY, transmissions=30 * DAY, runs=30 * DAY)
OLD = NOON - 40 * DAY
NOTHING = PurgeReport(conflicts=0, transmissions=0, runs=0, dry_run=False)


def sent(repository: Engine, run_id: str, ended_at: datetime, synchronization: str = PAIR) -> str:
    what = report(synchronization=synchronization)
    record_transmission(repository, run_id, what, started_at=ended_at - MINUTE, ended_at=ended_at)
    return what.transmission


def failed(repository: Engine, ended_at: datetime) -> str:
    run_id = begun(repository, leased(repository, ended_at - MINUTE))
    fail_run(repository, run_id, "no", ended_at)
    return run_id


def run_ended(
    repository: Engine, synchronization: str, scope: Scope, end: str, age: int, transmissions: Sequence[int]
) -> None:
    ended_at = NOON - age * DAY
    run_id = begun(repository, leased(repository, ended_at - MINUTE, synchronization=synchronization), scope)
    for days in transmissions:
        sent(repository, run_id, NOON - days * DAY, synchronization)
    if end == "succeeded":
        complete_run(repository, run_id, ended_at)
    elif end == "failed":
        fail_run(repository, run_id, "no", ended_at)
    elif end == "released":
        release_run(repository, run_id, ended_at)


def ids(repository: Engine, table: str) -> set[str]:
    with repository.connect() as connection:
        return set(connection.scalars(text(f"SELECT id FROM {table}")))


def test_each_kind_goes_after_its_own_retention(repository: Engine) -> None:
    ages = Retention(conflicts=10 * DAY, transmissions=20 * DAY, runs=30 * DAY)
    for days in (9, 11, 19, 21, 29, 31):
        collect_conflicts(repository, [conflict(f"c{days}", decided_at=NOON - days * DAY)])
        sent(repository, failed(repository, NOON - days * DAY), NOON - days * DAY)
    assert purge(repository, ages, NOON) == PurgeReport(conflicts=5, transmissions=3, runs=1, dry_run=False)
    assert ids(repository, "conflict") == {"c9"}


def test_a_record_exactly_as_old_as_its_retention_stays(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1", decided_at=NOON - 30 * DAY)])
    sent(repository, failed(repository, NOON - 30 * DAY), NOON - 30 * DAY)
    assert purge(repository, MONTH, NOON) == NOTHING
    assert purge(repository, MONTH, NOON + timedelta(microseconds=1)) == PurgeReport(1, 1, 1, dry_run=False)


def test_what_has_no_retention_stays_for_ever(repository: Engine) -> None:
    collect_conflicts(repository, [conflict("c1", decided_at=OLD)])
    sent(repository, failed(repository, OLD), OLD)
    for_ever = Retention(conflicts=None, transmissions=None, runs=None)
    assert purge(repository, for_ever, NOON + 10_000 * DAY) == NOTHING


def test_a_dry_run_reports_the_same_numbers_and_deletes_nothing(repository: Engine) -> None:
    collect_conflicts(repository, [conflict(f"c{n}", decided_at=OLD) for n in range(3)])
    for run_id in [
        failed(repository, OLD),
        failed(repository, OLD + DAY),
        completed(repository, OLD + 2 * DAY),
    ]:
        sent(repository, run_id, OLD)
    sent(repository, failed(repository, OLD + 3 * DAY), NOON)
    expected = {"conflicts": 3, "transmissions": 3, "runs": 2}
    assert purge(repository, MONTH, NOON, dry_run=True) == PurgeReport(**expected, dry_run=True)
    assert purge(repository, MONTH, NOON, dry_run=True) == PurgeReport(**expected, dry_run=True)
    assert purge(repository, MONTH, NOON) == PurgeReport(**expected, dry_run=False)
    assert purge(repository, MONTH, NOON) == NOTHING


def test_a_running_run_stays_with_its_transmissions_however_old(repository: Engine) -> None:
    running = begun(repository, leased(repository, OLD))
    transmission = sent(repository, running, OLD)
    assert purge(repository, MONTH, NOON) == NOTHING
    assert [sent.id for sent in transmissions(repository, running)] == [transmission]


def test_the_last_completed_run_of_each_synchronization_stays(repository: Engine) -> None:
    completed(repository, OLD)
    last = completed(repository, OLD + DAY)
    failed(repository, OLD + 2 * DAY)
    other = completed(repository, OLD, synchronization="london_oslo")
    assert purge(repository, MONTH, NOON).runs == 2
    assert ids(repository, "synchronization_run") == {last, other}


@pytest.mark.parametrize(
    "scope",
    [
        Scope(plan_only=True),
        Scope(tables=["public.flights"]),
        Scope(direction=Direction.FORWARD),
        Scope(direction=Direction.REVERSE),
        Scope(interval=Interval.between(OLD - DAY, OLD)),  # a backfill
    ],
    ids=["plan", "tables", "forward", "reverse", "backfill"],
)
def test_a_partial_run_does_not_take_the_place_of_the_last_whole_one(
    repository: Engine, scope: Scope
) -> None:
    whole = completed(repository, OLD)
    completed(repository, OLD + DAY, scope)
    assert purge(repository, MONTH, NOON).runs == 1
    assert ids(repository, "synchronization_run") == {whole}


@pytest.mark.parametrize("end", ["failed", "released", "running"])
def test_a_run_that_did_not_succeed_does_not_take_the_place_of_the_last_whole_one(
    repository: Engine, end: str
) -> None:
    whole = completed(repository, OLD)
    run_ended(repository, PAIR, WHOLE, end, age=39, transmissions=[])
    purge(repository, MONTH, NOON)
    assert whole in ids(repository, "synchronization_run")


def test_a_running_run_keeps_no_transmission_of_another_run(repository: Engine) -> None:
    sent(repository, failed(repository, OLD), OLD)
    running = begun(repository, leased(repository, OLD + DAY, owner="run_2"))
    kept = sent(repository, running, OLD + DAY)
    assert purge(repository, MONTH, NOON) == PurgeReport(0, 1, 1, dry_run=False)
    assert ids(repository, "transmission") == {kept}


def test_runs_whose_transmissions_have_no_retention_stay_with_them(repository: Engine) -> None:
    with_transmission, without = failed(repository, OLD), failed(repository, OLD + DAY)
    sent(repository, with_transmission, OLD)
    for_ever = Retention(conflicts=None, transmissions=None, runs=DAY)
    assert purge(repository, for_ever, NOON) == PurgeReport(0, 0, 1, dry_run=False)
    assert without not in ids(repository, "synchronization_run")


def test_a_run_stays_while_a_transmission_of_it_stays(repository: Engine) -> None:
    run_id = failed(repository, OLD)
    sent(repository, run_id, OLD)
    keep_transmissions = Retention(conflicts=None, transmissions=90 * DAY, runs=DAY)
    assert purge(repository, keep_transmissions, NOON) == NOTHING
    assert [run.id for run in last_runs(repository)] == [run_id]


def test_a_purge_goes_in_batches_of_bounded_size(repository: Engine) -> None:
    collect_conflicts(repository, [conflict(f"c{n}", decided_at=OLD) for n in range(25)])
    deleted: list[int] = []

    @event.listens_for(repository, "after_cursor_execute")
    def count(*execution: object) -> None:
        if str(execution[2]).startswith(("DELETE FROM conflict", 'DELETE FROM "conflict"')):
            deleted.append(execution[1].rowcount)  # type: ignore[attr-defined]

    assert purge(repository, MONTH, NOON, batch=10).conflicts == 25
    assert deleted == [10, 10, 5]


DAYS = st.integers(0, 6)
RETENTIONS = st.none() | DAYS.map(lambda days: days * DAY)
SCOPES = st.builds(
    Scope,
    direction=st.sampled_from([None, None, None, *Direction]),
    tables=st.sampled_from([None, None, None, ("public.flights",)]),
    plan_only=st.sampled_from([False, False, False, True]),
    interval=st.sampled_from([None, None, None, Interval.between(OLD - DAY, OLD)]),
)
ENDS = st.sampled_from(["succeeded", "succeeded", "failed", "released", "running"])
#: Of each run: its synchronization, its scope, how it ended, its age in days, and the ages of its transmissions.
RUNS = st.lists(
    st.tuples(st.sampled_from([PAIR, "london_oslo"]), SCOPES, ENDS, DAYS, st.lists(DAYS, max_size=2)),
    max_size=8,
)


def kept_records(repository: Engine, retention: Retention) -> tuple[set[str], set[str]]:
    """The ids of the runs and of the transmissions that a purge at NOON has to keep."""

    def old(ended_at: datetime, kept: timedelta | None) -> bool:
        return kept is not None and ended_at < NOON - kept

    with repository.connect() as connection:
        ended = dict(connection.execute(select(SynchronizationRun.id, SynchronizationRun.ended_at)).all())
        runs = [find_run(connection, run_id) for run_id in ended]
        carried = connection.execute(
            select(Transmission.id, Transmission.run_id, Transmission.ended_at)
        ).all()
    young = {run_id for _, run_id, ended_at in carried if not old(ended_at, retention.transmissions)}
    whole = [run for run in runs if run.scope.is_whole and run.state == RunState.SUCCEEDED]
    newest = {run.synchronization: run.id for run in sorted(whole, key=lambda run: run.epoch)}
    return (
        {
            *(run_id for run_id, at in ended.items() if at is None or not old(at, retention.runs)),
            *young,
            *newest.values(),
        },
        {
            each
            for each, run_id, at in carried
            if ended[run_id] is None or not old(at, retention.transmissions)
        },
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS, of_runs=RETENTIONS, of_transmissions=RETENTIONS, batch=st.integers(1, 3))
def test_a_purge_keeps_what_is_young_running_or_the_last_whole_run_and_nothing_else(
    repository: Engine,
    runs: list[tuple[str, Scope, str, int, list[int]]],
    of_runs: timedelta | None,
    of_transmissions: timedelta | None,
    batch: int,
) -> None:
    with repository.begin() as connection:
        for table in ("transmission", "synchronization_run", "link", "synchronization"):
            connection.execute(text(f"DELETE FROM {table}"))
    for run in runs:
        run_ended(repository, *run)
    retention = Retention(conflicts=None, transmissions=of_transmissions, runs=of_runs)
    kept_runs, kept_transmissions = kept_records(repository, retention)
    counted = purge(repository, retention, NOON, dry_run=True)
    deleted = purge(repository, retention, NOON, batch=batch)
    assert (deleted.runs, deleted.transmissions) == (counted.runs, counted.transmissions)
    assert ids(repository, "synchronization_run") == kept_runs
    assert ids(repository, "transmission") == kept_transmissions
