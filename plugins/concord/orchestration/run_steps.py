"""How a run of a synchronization begins, completes, and gives its lease back."""

from __future__ import annotations

import logging
from typing import Any

import pendulum
from airflow.sdk import Context
from sqlalchemy import Engine

from concord.config import config_path, load
from concord.errors import ParametersRefused, TablesStopped
from concord.orchestration import parameters, run_lease
from concord.orchestration.airflow_errors import in_airflow_terms
from concord.orchestration.repository_connection import repository
from concord.orchestration.run_plan import RunPlan, SynchronizeParameters
from concord.repository.runs import begin_run, complete_run, fail_run, release_run
from concord.repository.status import transmissions

logger = logging.getLogger("concord.configuration")


def begin(synchronization: str, context: Context) -> dict[str, Any]:
    """Check what the run was asked to do, take the lease, record the run; the plan, as XCom carries it.

    Works without a logical date: what a link sends comes from its position, never from the data interval.
    Fails for good on parameters it does not take, and is tried again while another run holds the lease.
    """
    dag_run = context["dag_run"]
    with in_airflow_terms():
        _refuse_backfill(dag_run.run_type)
        asked = parameters.read(SynchronizeParameters, dag_run.conf)
        configuration = load(config_path())
        for notice in configuration.notices:
            logger.info("%s", notice)
        asked.check_tables([table.name for table in configuration.tables(synchronization)])
        engine = repository()
        owner = run_lease.owner_of(dag_run.dag_id, dag_run.run_id)
        lease = run_lease.take(engine, synchronization, owner)
        run_type, scope = dag_run.run_type.value, asked.scope
        run_id = begin_run(engine, lease, dag_run_id=dag_run.run_id, run_type=run_type, scope=scope)
    plan = RunPlan(
        synchronization=synchronization,
        run_id=run_id,
        owner=owner,
        epoch=lease.epoch,
        direction=scope.direction,
        tables=None if asked.tables is None else tuple(asked.tables),
        plan_only=asked.plan_only,
    )
    return plan.model_dump(mode="json")


def complete(plan: dict[str, Any]) -> None:
    """Mark the run as done. Its start time becomes the synchronization's only when it covered everything:

    both directions, every table, and no mere plan (S1-20). Fails for good when a link left tables out: both
    links have carried the others by then. Raises TablesStopped in Airflow's terms.
    """
    with in_airflow_terms():
        engine, run_id = repository(), RunPlan.model_validate(plan).run_id
        if stopped := _stopped(engine, run_id):
            fail_run(engine, run_id, stopped, pendulum.now("UTC"))
            raise TablesStopped(stopped)
        complete_run(engine, run_id, pendulum.now("UTC"))


def _stopped(engine: Engine, run_id: str) -> str:
    """Which tables the newest transmission of each link left out, and why; empty when none."""
    newest = {each.direction: each for each in transmissions(engine, run_id)}
    return "; ".join(
        f"{each.direction} link: {each.error_message}"
        for each in newest.values()
        if each.error_code == TablesStopped.code
    )


def release(synchronization: str, context: Context) -> None:
    """Give the lease back, however the run went; a run that never said how it went is marked as released."""
    dag_run = context["dag_run"]
    plan = context["ti"].xcom_pull(task_ids="begin")
    with in_airflow_terms():
        engine = repository()
        run_lease.give_back(engine, synchronization, run_lease.owner_of(dag_run.dag_id, dag_run.run_id))
        if plan is not None:
            release_run(engine, RunPlan.model_validate(plan).run_id, pendulum.now("UTC"))


def _refuse_backfill(run_type: str) -> None:
    if run_type == "backfill":
        raise ParametersRefused(
            "a backfill is refused: a run sends what changed since the last one, whatever its interval."
            " Trigger the DAG instead; it misses nothing"
        )
