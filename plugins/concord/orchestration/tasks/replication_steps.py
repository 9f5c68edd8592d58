"""How a run of a replication's DAG begins, completes, and gives its lease back."""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.sdk import Context
from sqlalchemy import Engine

from concord.configuration.configuration import config_path, load
from concord.jobs.replication import replication_name
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import objectives, parameters, replication_run
from concord.orchestration.tasks.replication_run import ReplicateParameters, ReplicationPlan
from concord.repository.models import RunState
from concord.repository.runs import complete_run, fail_run, release_run
from concord.repository.status import last_runs, transmissions


def begin(name: str, context: Context) -> dict[str, Any]:
    """Take the lease, record the run; the plan, as XCom carries it."""
    dag_run = context["dag_run"]
    with in_airflow_terms():
        parameters.read(ReplicateParameters, dag_run.conf)
        engine, configuration = repository(), load(config_path())
        if dag_run.run_type == "scheduled" and configuration.replications[name].continuous:
            replication_run.rest_after_failure(engine, name)
        plan = replication_run.begin(
            engine,
            configuration,
            name,
            LeaseHolder(context["ti"]).has_ended,
            owner=owners.of_run(dag_run),
            dag_run_id=dag_run.run_id,
            run_type=dag_run.run_type.value,
        )
    return plan.model_dump(mode="json")


def complete(plan: Any) -> None:
    """Every direction has ended well."""
    with in_airflow_terms():
        run_id = ReplicationPlan.model_validate(plan).run_id
        complete_run(repository(), run_id, pendulum.now("UTC"))


def release(name: str, context: Context) -> None:
    """Give the lease back, however the run went; a run that never said how it went is marked as released.

    One of which a direction stopped has failed, although another one may have ended well after it. Then its directions
    are judged by their objective.
    """
    plan = context["ti"].xcom_pull(task_ids="begin")
    with in_airflow_terms():
        engine = repository()
        keeping.give_back(engine, replication_name(name), owners.of_run(context["dag_run"]))
        run_id = None if plan is None else ReplicationPlan.model_validate(plan).run_id
        if run_id is not None:
            _fail_where_one_stopped(engine, name, run_id)
            release_run(engine, run_id, pendulum.now("UTC"))
        objectives.after_run(engine, replication_name(name), run_id, context)


def _fail_where_one_stopped(engine: Engine, name: str, run_id: str) -> None:
    """End a run that has not ended with the sentences of its directions that stopped."""
    [run] = last_runs(engine, replication_name(name), limit=1)
    sent = {each.direction: each for each in transmissions(engine, run_id)}
    stopped = [each.error_message for each in sent.values() if each.error_message is not None]
    if stopped and (run.id, run.state) == (run_id, RunState.RUNNING):
        fail_run(engine, run_id, "\n".join(stopped), pendulum.now("UTC"))
