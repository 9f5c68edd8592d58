"""The DAG of one snapshot: begin, refresh, complete; the lease always given back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pendulum
from airflow.sdk import DAG, Context, Param, get_current_context, task, teardown

from concord.configuration.configuration import Configuration, config_path, load
from concord.jobs.snapshot import SnapshotJob, SnapshotReport, snapshot_name
from concord.messages.errors import ConcordError
from concord.orchestration.dags.page import page
from concord.orchestration.dags.synchronize import LINK_TIMEOUT, RETRIES, START, STEP_TIMEOUT, schedule
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import parameters, snapshot_refresh
from concord.orchestration.tasks.link import will_not_be_tried_again
from concord.orchestration.tasks.outcome_log import log_table
from concord.orchestration.tasks.snapshot_refresh import SnapshotParameters, SnapshotPlan
from concord.orchestration.tasks.spark_application import SparkApplication
from concord.repository.runs import complete_run, release_run

#: Every type of run but backfill: a refresh has no use for an interval.
RUN_TYPES: Any = ["scheduled", "manual", "operator_triggered", "asset_triggered", "asset_materialization"]


class SnapshotOperator(SparkApplication):
    """Refreshes one snapshot under the plan that `begin` made, and returns its counts."""

    template_fields = (*SparkApplication.template_fields, "plan")

    def __init__(self, *, snapshot: str, plan: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(application="snapshot", name=f"concord snapshot {snapshot}", **kwargs)
        self.snapshot, self.plan = snapshot, plan

    def execute(self, context: Context) -> dict[str, Any]:  # type: ignore[override]
        """Rows inserted, updated, deleted, unchanged; bytes, seconds per step: no row data."""
        plan = SnapshotPlan.model_validate(self.plan)
        with in_airflow_terms():
            engine = repository()
            try:
                done = snapshot_refresh.refresh(engine, load(config_path()), plan, self.refresh, self.on_kill)
            except ConcordError as error:
                if will_not_be_tried_again(error, context):
                    snapshot_refresh.fail(engine, plan, error)
                raise
        counts = ["inserted", "updated", "deleted", "unchanged"]
        log_table(f"snapshot {self.snapshot}", counts, [[done[count] for count in counts]])
        return done

    def refresh(self, job: SnapshotJob) -> SnapshotReport:
        """Submit the job and wait for its report. Raises a ConcordError."""
        return self.submit(job, SnapshotReport)


def snapshot_dag(configuration: Configuration, name: str) -> DAG:
    """`snapshot__<name>`: on its schedule, on demand, and whenever the asset of the same name is updated."""
    snapshot = configuration.snapshots[name]
    with DAG(
        f"snapshot__{name}",
        description=f"Copies {snapshot.relation} of {snapshot.source} to {snapshot.table} of {snapshot.target}.",
        schedule=schedule(f"snapshot__{name}", f"concord://snapshot/{name}", snapshot.schedule),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        allowed_run_types=RUN_TYPES,
        default_args={"execution_timeout": STEP_TIMEOUT, **RETRIES},
        params=_PARAMS,
        doc_md=page(
            [
                f"Copies `{snapshot.relation}` of `{snapshot.source}` to `{snapshot.table}` of `{snapshot.target}`, one"
                f" way ({snapshot.kind.value}). Edits of the copy are overwritten."
            ],
            f"{'no schedule' if snapshot.schedule is None else f'the schedule `{snapshot.schedule}` (UTC)'}, by hand,"
            f" and when `concord://snapshot/{name}` is updated. No backfill.",
            [
                "the end of the log of `refresh`: rows that were inserted, updated and deleted;",
                f"`python -m concord status`, and `python -m concord snapshot refresh {name} --plan`;",
                "`docs/snapshots.md` in Concord's directory.",
            ],
            _PARAMS,
        ),
        tags=["concord", "snapshot", snapshot.kind.value],
    ) as dag:
        _tasks(name)
    return dag


_PARAMS = {
    "full": Param(
        False, type="boolean", description="Compare the whole content, as for a non-incremental snapshot."
    ),
    "plan_only": Param(False, type="boolean", description="Count what would be done, and write nothing."),
}


def _tasks(name: str) -> None:
    @task
    def begin() -> dict[str, Any]:
        return _begin(name, get_current_context())

    @task
    def complete(plan: Any) -> None:
        with in_airflow_terms():
            run_id = SnapshotPlan.model_validate(plan).run_id
            complete_run(repository(), run_id, pendulum.now("UTC"))

    @teardown
    def release() -> None:
        _release(name, get_current_context())

    plan: Any = begin()
    refresh = SnapshotOperator(task_id="refresh", snapshot=name, plan=plan, execution_timeout=LINK_TIMEOUT)
    plan >> refresh >> complete(plan) >> release()


def _begin(name: str, context: Context) -> dict[str, Any]:
    """Check what the run was asked to do, take the lease, record the run; the plan, as XCom carries it."""
    dag_run = context["dag_run"]
    with in_airflow_terms():
        asked = parameters.read(SnapshotParameters, dag_run.conf)
        plan = snapshot_refresh.begin(
            repository(),
            load(config_path()),
            name,
            asked,
            LeaseHolder(context["ti"]).has_ended,
            owner=owners.of_run(dag_run),
            dag_run_id=dag_run.run_id,
            run_type=dag_run.run_type.value,
        )
    return plan.model_dump(mode="json")


def _release(name: str, context: Context) -> None:
    """Give the lease back, however the run went; a run that never said how it went is marked as released."""
    dag_run = context["dag_run"]
    plan = context["ti"].xcom_pull(task_ids="begin")
    with in_airflow_terms():
        engine = repository()
        owner = owners.of_run(dag_run)
        keeping.give_back(engine, snapshot_name(name), owner)
        if plan is not None:
            release_run(engine, SnapshotPlan.model_validate(plan).run_id, pendulum.now("UTC"))
