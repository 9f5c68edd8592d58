"""A run that waits for the lease in Airflow's triggerer: what the trigger notices, and what becomes of it otherwise."""

import time
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowRescheduleException, TaskDeferred
from airflow.utils.state import DagRunState

from concord.orchestration.dags.task_group import ConcordTaskGroup
from concord.orchestration.leases import keeping, trigger
from concord.orchestration.leases.trigger import LONGEST, OVERDUE, LeaseTrigger
from concord.orchestration.tasks import run_steps
from concord.orchestration.tasks.begin import BeginOperator
from concord.repository import status
from tests.given.airflow_pair import NAME, Pair, dag_named, states
from tests.given.typed_commands import Terminal
from tests.orchestration.backfill_runs import ALL_ALIVE, dag_run
from tests.orchestration.leases.waiting_runs import killed, once_it_waits, set_state, waits

pytestmark = pytest.mark.airflow

DAG_ID = f"synchronize__{NAME}"
INLINE = "running trigger in line"


@pytest.fixture
def deferring(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    monkeypatch.setattr(trigger, "LONGEST", timedelta(hours=1))  # what it does not notice, it never does
    for name, seconds in {"SOON": 0.2, "PAUSE": 0.5}.items():
        monkeypatch.setattr(trigger, name, timedelta(seconds=seconds))
        monkeypatch.setattr(run_steps, name, timedelta(seconds=seconds))
    return pair


def give_back(pair: Pair, after: float = 0.5) -> None:
    """As the other run does it, some time later."""
    time.sleep(after)
    keeping.give_back(pair.repository, NAME, "another run")


def give_back_when_it_waits_anew(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    deadline = time.monotonic() + 30
    while len(waits(caplog)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    give_back(pair, 0)


def test_a_run_is_deferred_while_another_one_holds_the_lease_and_begins_when_that_gives_it_back(
    deferring: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    keeping.take(deferring.repository, NAME, "another run")
    with once_it_waits(caplog, give_back, deferring):
        run = deferring.run(conf={"plan_only": True})
    assert run.state == "success", states(run)
    [said] = waits(caplog)
    assert 'holder="another run"' in said
    assert "this run begins when its lease ends" in said
    assert INLINE in caplog.text


def test_a_run_that_airflow_marks_as_failed_meanwhile_is_waited_for_no_longer(
    deferring: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    before, left = killed(deferring, DagRunState.RUNNING)
    with once_it_waits(caplog, set_state, before, DagRunState.FAILED):
        assert deferring.run(conf={"plan_only": True}).state == "success"
    assert INLINE in caplog.text
    assert "takes the lease of a run that has ended" in caplog.text
    [newest, *_] = status.last_runs(deferring.repository)
    assert newest.started_at < left.expires_at


def test_a_run_that_waits_for_long_says_anew_whom_it_waits_for(
    deferring: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trigger, "LONGEST", timedelta(seconds=0.5))
    keeping.take(deferring.repository, NAME, "another run")
    with once_it_waits(caplog, give_back_when_it_waits_anew, deferring, caplog):
        assert deferring.run(conf={"plan_only": True}).state == "success"
    assert len(waits(caplog)) > 1


def test_patience_ends_as_it_does_in_the_scheduler(
    deferring: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trigger, "LONGEST", timedelta(seconds=0.5))
    keeping.take(deferring.repository, NAME, "another run")
    dag = dag_named(DAG_ID)
    dag.get_task("begin").retries = 0
    with once_it_waits(caplog, monkeypatch.setattr, run_steps, "PATIENCE", timedelta(0)):
        run = dag.test(logical_date=None, run_conf={"plan_only": True})
    assert states(run)["begin"] == "failed"
    assert waits(caplog)


def test_a_terminals_run_waits_in_its_own_process(
    deferring: Pair, terminal: Terminal, caplog: pytest.LogCaptureFixture
) -> None:
    keeping.take(deferring.repository, NAME, "another run")
    with once_it_waits(caplog, give_back, deferring):
        assert terminal("synchronize", NAME, "--plan").status == 0
    assert INLINE not in caplog.text


def test_where_no_triggerer_runs_the_scheduler_carries_the_waiting_on(
    deferring: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow resumes a task by __fail__ whose trigger has not ended in time; what is given here is what it gives."""
    keeping.take(deferring.repository, NAME, "another run")
    begin = BeginOperator(task_id="begin", synchronization=NAME)
    context: Any = {"dag_run": dag_run("run_1", "manual"), "ti": ALL_ALIVE}
    with pytest.raises(TaskDeferred) as deferred:
        begin.execute(context)
    assert deferred.value.timeout == OVERDUE > LONGEST
    with pytest.raises(AirflowRescheduleException):
        begin.resume_execution("__fail__", {"error": "Trigger timeout"}, context)
    assert "the triggerer did not carry the waiting: Trigger timeout" in caplog.text
    with pytest.raises(AirflowRescheduleException):  # and from then on
        begin.execute({**context, "task_reschedule_count": 1})
    keeping.give_back(deferring.repository, NAME, "another run")
    plan = begin.resume_execution("__fail__", {"error": "Trigger timeout"}, context)
    assert plan["synchronization"] == NAME


def test_a_dag_of_a_teams_own_may_say_where_its_runs_wait(pair: Pair) -> None:
    with DAG("of_a_team") as dag:
        ConcordTaskGroup(NAME, group_id="deferring", default_args={"deferrable": True})
        ConcordTaskGroup(NAME, group_id="usual")
    begins = {task.task_id: task.deferrable for task in dag.tasks if isinstance(task, BeginOperator)}
    assert begins == {"deferring.begin": True, "usual.begin": False}


def test_what_airflow_stores_of_the_waiting_is_two_names() -> None:
    path, kept = LeaseTrigger(synchronization=NAME, holder="another run").serialize()
    assert path == "concord.orchestration.leases.trigger.LeaseTrigger"
    assert kept == {"synchronization": NAME, "holder": "another run"}
