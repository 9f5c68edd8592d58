"""Backfill runs through Airflow: the versions of their data interval, one run at a time, no position moved."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.models import dagrun
from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.utils.types import DagRunType as StoredRunType

from concord.messages.errors import LeaseHeld
from concord.orchestration.leases import keeping
from concord.orchestration.tasks import run_steps
from concord.repository import status
from tests.given.airflow_pair import NAME, Pair, dag_named, states
from tests.orchestration.backfill_runs import ALL_ALIVE, JUNE, MAY, STAMP, STATE, dag_run

pytestmark = pytest.mark.airflow


def backfill(pair: Pair, monkeypatch: pytest.MonkeyPatch, start: datetime, end: datetime) -> DagRun:
    """One run of `airflow backfill create`; dag.test() alone makes manual ones."""
    create: Callable[..., DagRun] = dagrun.get_or_create_dagrun

    def as_backfill(**given: Any) -> DagRun:
        given |= {"data_interval": (start, end), "start_date": pendulum.now("UTC")}
        run = create(**given)
        run.run_type = StoredRunType.BACKFILL_JOB
        given["session"].commit()
        return run

    monkeypatch.setattr(dagrun, "get_or_create_dagrun", as_backfill)
    return dag_named(f"synchronize__{NAME}").test(logical_date=start)  # type: ignore[no-any-return]


@pytest.mark.spark
def test_a_backfill_run_waits_for_the_lease_then_carries_its_data_interval_both_ways(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 2)")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight IN (3, 4)")
    for site, flights in ((pair.london, (1, 2)), (pair.capetown, (3, 4))):
        for flight, at in zip(flights, (MAY, JUNE), strict=True):
            site.run(STAMP.format(flight=flight, at=int(at.timestamp()) * 1_000_000))
    before = [site.run(STATE) for site in (pair.london, pair.capetown)]
    keeping.take(pair.repository, NAME, "another run")
    monkeypatch.setattr(run_steps, "PAUSE", timedelta(seconds=0.5))
    release = threading.Timer(2, lambda: keeping.give_back(pair.repository, NAME, "another run"))
    release.start()

    run = backfill(pair, monkeypatch, MAY, JUNE)

    release.join()
    assert run.state == "success", states(run)
    changed = "SELECT flight, delay FROM flights WHERE delay <> 0 ORDER BY flight"
    assert pair.london.run(changed) == [(1, 10), (2, 10), (3, 20)]
    assert pair.capetown.run(changed) == [(1, 10), (3, 20), (4, 20)]
    assert [site.run(STATE) for site in (pair.london, pair.capetown)] == before
    [recorded] = status.last_runs(pair.repository)
    assert (recorded.run_type, recorded.state) == ("backfill", "succeeded")
    assert (recorded.interval_start, recorded.interval_end) == (MAY, JUNE)
    # row 1 comes back with the reverse link, which excludes nothing (rule 2)
    counts = [
        (each.acquired, each.applied, each.converged)
        for each in status.transmissions(pair.repository, recorded.id)
    ]
    assert counts == [(1, 1, 0), (2, 1, 1)]
    [synchronization] = status.synchronizations(pair.repository)
    assert (synchronization.owner, synchronization.last_started_at) == (None, None)
    assert [link.last_started_at for link in status.links(pair.repository)] == [None, None]


def test_backfill_runs_and_a_scheduled_one_at_once_never_overlap(pair: Pair) -> None:
    """Airflow ran six at once under max_active_runs=1; what keeps them apart is the lease."""
    inside: list[str] = []
    together: list[list[str]] = []

    def run(number: int) -> int:
        begun_as = "scheduled" if number == 0 else "backfill"
        context: Any = {"dag_run": dag_run(f"run_{number}", begun_as), "ti": ALL_ALIVE}
        times = 0
        while True:
            try:
                plan = run_steps.begin(NAME, context)
                break
            except AirflowRescheduleException:
                times += 1
                time.sleep(random.uniform(0, 0.02))
        inside.append(f"run_{number}")
        together.append(list(inside))
        time.sleep(random.uniform(0, 0.03))
        together.append(list(inside))
        inside.remove(f"run_{number}")
        run_steps.complete(plan, {})
        ending = SimpleNamespace(task_id="release", xcom_pull=lambda task_ids: plan)
        run_steps.release(NAME, {**context, "ti": ending})
        return times

    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(run, number) for number in range(8)]

    assert max(map(len, together)) == 1
    assert [each.exception() for each in runs] == [None] * 8
    assert sum(each.result() for each in runs) > 0, "some have waited"
    recorded = sorted(status.last_runs(pair.repository), key=lambda each: each.epoch)
    assert [each.state for each in recorded] == ["succeeded"] * 8
    scheduled = next(each for each in recorded if each.run_type == "scheduled")
    assert scheduled.interval_start is None
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.last_started_at == scheduled.started_at


def test_a_run_that_has_waited_for_a_day_says_who_holds_the_lease(pair: Pair) -> None:
    keeping.take(pair.repository, NAME, "another run")
    yesterday = dag_run("late", "backfill", pendulum.now("UTC").subtract(hours=25))
    with pytest.raises(Exception, match="is being run by another run") as refused:
        run_steps.begin(NAME, {"dag_run": yesterday, "ti": ALL_ALIVE})  # type: ignore[typeddict-item]
    assert LeaseHeld.code in str(refused.value)
