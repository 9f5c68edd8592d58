"""After a run that was killed whole, the next one: how long it waits, and what its log says meanwhile."""

import logging
import re
from datetime import timedelta

import pytest
from airflow.models.variable import Variable
from airflow.utils.state import DagRunState

from concord.messages.errors import LeaseHeld, LeaseLost
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.owners import LeaseOwner
from concord.orchestration.surroundings.process import this_process
from concord.orchestration.tasks import run_steps
from concord.repository import status
from concord.repository.lease import renew
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, Pair, states
from tests.orchestration.leases.waiting_runs import (
    DAG_ID,
    MINUTE,
    killed,
    once_it_waits,
    owner,
    set_state,
    waits,
)

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("dag_id", "state"),
    [
        (DAG_ID, DagRunState.FAILED),
        (DAG_ID, DagRunState.SUCCESS),
        (f"initialize__{NAME}", DagRunState.FAILED),
        (f"compare__{NAME}", DagRunState.FAILED),
    ],
)
def test_the_lease_of_a_run_that_airflow_knows_to_have_ended_is_taken_at_once(
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    dag_id: str,
    state: DagRunState,
) -> None:
    monkeypatch.setattr(keeping, "DURATION", MINUTE)  # a run that waits all the same is soon found
    _, left = killed(pair, state)
    conf = {"repair": "apply"} if dag_id.startswith("compare") else {}
    with caplog.at_level(logging.INFO):
        run = pair.run(dag_id, conf)
    assert run.state == "success", states(run)
    assert waits(caplog) == []
    assert "takes the lease of a run that has ended" in caplog.text
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.epoch > left.epoch
    with pytest.raises(LeaseLost):  # whatever that run left alive is fenced
        renew(pair.repository, left, MINUTE, left.acquired_at)


def test_a_run_waits_for_one_that_may_be_alive_says_what_to_do_and_begins_when_that_is_done(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_steps, "PAUSE", timedelta(seconds=0.5))
    before, left = killed(pair, DagRunState.RUNNING)
    with once_it_waits(caplog, set_state, before, DagRunState.FAILED):
        assert pair.run().state == "success"
    assert waits(caplog)
    for said in waits(caplog):
        assert f'holder="{DAG_ID}/{before.run_id} of Airflow ' in said
        assert f'until="{left.expires_at}"' in said
        assert "mark it as failed in Airflow, and this run begins within seconds" in said
    [newest, *_] = status.last_runs(pair.repository)
    assert newest.started_at < left.expires_at


def test_the_first_run_names_its_airflow_and_the_next_one_keeps_the_name(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_VAR_CONCORD_AIRFLOW")
    assert Variable.get(owners.VARIABLE, None) is None
    names = []
    for _ in range(2):
        assert pair.run(conf={"plan_only": True}).state == "success"
        names.append(Variable.get(owners.VARIABLE))
    assert names[0] == names[1]
    Variable.delete(owners.VARIABLE)


def test_another_airflows_run_of_the_same_id_is_waited_for_although_this_airflow_calls_its_own_ended(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_steps, "PAUSE", timedelta(seconds=0.5))
    ended, ours = killed(pair, DagRunState.FAILED)
    keeping.give_back(pair.repository, NAME, ours.owner)
    theirs = keeping.take(pair.repository, NAME, owner(ended, "another"))
    with once_it_waits(caplog, keeping.give_back, pair.repository, NAME, theirs.owner):
        assert pair.run().state == "success"
    assert waits(caplog)
    assert all("its Airflow is another one" in said for said in waits(caplog))
    assert "takes the lease of a run that has ended" not in caplog.text


def test_runs_of_two_airflows_with_the_same_id_are_two_holders(pair: Pair) -> None:
    run, _ = killed(pair, DagRunState.RUNNING)
    again = keeping.take(pair.repository, NAME, owner(run, "tests"))
    assert LeaseOwner.parse(again.owner).airflow
    with pytest.raises(LeaseHeld):
        keeping.take(pair.repository, NAME, owner(run, "another"))


def test_the_lease_of_a_terminal_whose_process_is_gone_is_taken_at_once(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    place, _, started = this_process().rpartition("/")
    alive = str(LeaseOwner("anna/0123", process=this_process()))
    keeping.take(pair.repository, NAME, alive)
    with pytest.raises(LeaseHeld):
        keeping.take(pair.repository, NAME, "bea/4567")
    keeping.give_back(pair.repository, NAME, alive)
    # Its number was given to another process since, which is this one.
    keeping.take(pair.repository, NAME, str(LeaseOwner("anna/0123", process=f"{place}/{int(started) - 1}")))
    with caplog.at_level(logging.INFO):
        keeping.take(pair.repository, NAME, "bea/4567")
    assert "takes the lease of a run that has ended" in caplog.text


def test_a_command_at_a_terminal_is_waited_for_as_long_as_it_holds_its_lease(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_steps, "PAUSE", timedelta(seconds=0.5))
    keeping.take(pair.repository, NAME, "somebody/0123456789abcdef")
    with once_it_waits(caplog, keeping.give_back, pair.repository, NAME, "somebody/0123456789abcdef"):
        assert pair.run().state == "success"
    assert waits(caplog)
    assert all("this run begins when its lease ends" in said for said in waits(caplog))


def test_operations_says_what_the_log_says_of_a_run_that_was_killed() -> None:
    text = re.sub(r"\s+", " ", (PROJECT / "docs" / "operations.md").read_text())
    for said in ("waits for the lease", "takes the lease of a run that has ended", "mark it as failed"):
        assert said in text
    assert f"{keeping.DURATION.total_seconds() / 60:.0f} minutes" in text
