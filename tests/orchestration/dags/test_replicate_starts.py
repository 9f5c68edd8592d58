"""When the runs of a replication start, and how they end."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pendulum
import pytest

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.orchestration.dags import maintenance, replicate
from concord.orchestration.tasks import replication_run
from concord.repository.lease import acquire
from concord.repository.migration import migrate
from concord.repository.opening import open_repository
from concord.repository.runs import begin_run, fail_run
from tests.configuration.conftest import parse
from tests.given.configured_replications import BOOKINGS, BOTH, section, written

__all__ = ["parse"]
pytestmark = pytest.mark.airflow

NAME = "to_capetown"
Parse = Callable[[str], Configuration]


def configured(parse: Parse, **more: str) -> Configuration:
    return parse(written(**{NAME: BOOKINGS | more}))


def test_a_continuous_replication_has_one_run_after_the_other_which_stays(parse: Parse) -> None:
    configuration = configured(parse, continuous="{run_for: 2 h}")
    dag = replicate.replicate_dag(configuration, NAME)
    assert (type(dag.timetable).__name__, dag.max_active_runs) == ("ContinuousTimetable", 1)
    assert "one after the other" in str(dag.doc_md)
    assert configuration.replications[NAME].stays == {"run_for": 7200.0, "linger": 7200.0}


def test_a_continuous_replication_both_ways_has_one_task_that_stays_in_both(parse: Parse) -> None:
    """S2-30: a task that stayed in one direction would keep the other waiting."""
    text = BOTH + section("replications", {NAME: BOOKINGS | {"updates": "both", "continuous": "{}"}})
    dag = replicate.replicate_dag(parse(text), NAME)
    assert set(dag.task_ids) == {"begin", "replicate", "complete", "release"}
    assert "`replicate` replays the subscriber's own transactions" in str(dag.doc_md)


def test_a_scheduled_replication_runs_to_the_end_of_the_log(parse: Parse) -> None:
    configuration = configured(parse, schedule='"@hourly"')
    assert "`@hourly`" in str(replicate.replicate_dag(configuration, NAME).doc_md)
    assert configuration.replications[NAME].stays == {}


def test_each_agent_of_queued_updating_is_a_dag_or_a_task_with_a_schedule(parse: Parse) -> None:
    """S3-09: the snapshot agent, the log reader with the distribution agent, the queue reader, and the cleanup.

    S3-11, S3-12: the first way runs on the replication's schedule. S3-16: so does the way back.
    """
    queued = BOOKINGS | {"updates": "queued", "schedule": '"*/5 * * * *"'}
    configuration = parse(BOTH + section("replications", {NAME: queued}))
    dag = replicate.replicate_dag(configuration, NAME)
    assert "'*/5 * * * *'" in str(dag.schedule)
    ways = [task for task in dag.topological_sort() if isinstance(task, replicate.ReplicateOperator)]
    assert [(each.task_id, each.direction) for each in ways] == [
        ("replicate", Direction.FORWARD),
        ("replicate_back", Direction.REVERSE),
    ]
    snapshot = replicate.initialize_replication_dag(configuration, NAME)
    assert (snapshot.dag_id, snapshot.task_ids) == (f"initialize__{NAME}", ["initialize"])
    cleanup = maintenance.log_purge_dag()
    assert (str(cleanup.schedule), cleanup.task_ids) == ("*/15 * * * *", ["purge", "keep_up", "objectives"])


def test_a_task_that_is_ended_has_a_moment_for_its_batch_and_then_the_databases_end_their_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupted = Event()
    monkeypatch.setattr(replicate, "PATIENCE", 0.3)
    monkeypatch.setattr(replicate, "interrupt_all", interrupted.set)
    operator = replicate.ReplicateOperator(
        task_id="replicate", replication=NAME, plan={}, direction=Direction.FORWARD
    )
    assert not operator.asked_to_end()
    operator.on_kill()
    assert operator.asked_to_end()
    assert not interrupted.wait(0.1)
    assert interrupted.wait(5)


def test_a_continuous_run_that_failed_is_followed_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(f"sqlite:///{tmp_path / 'repository.db'}")
    migrate(repository)
    slept: list[float] = []
    monkeypatch.setattr(replication_run, "sleep", slept.append)
    replication_run.rest_after_failure(repository, NAME)
    now = pendulum.now("UTC")
    lease = acquire(repository, f"replication/{NAME}", "owner", pendulum.duration(minutes=1), now)
    run = begin_run(repository, lease, dag_run_id="one", run_type="scheduled")
    replication_run.rest_after_failure(repository, NAME)
    assert slept == []
    fail_run(repository, run, "why", pendulum.now("UTC").subtract(seconds=20))
    replication_run.rest_after_failure(repository, NAME)
    assert slept == [pytest.approx(40, abs=2)]
