"""The last task of a synchronization whose conflicts may ask for a re-initialization: starts it, once (S3-21).

It comes after the lease is released, so that the other DAG finds it free. The sites tell which tables it starts
with, not this run. The next run finds the requests of a run that died before this task.
"""

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowSkipException

from concord.configuration.configuration import config_path, load
from concord.jobs.initialization import How
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.tasks.reinitialization import requested
from concord.orchestration.tasks.run_plan import RunPlan

logger = logger_named("concord.reinitialize")


class ReinitializeOperator(TriggerDagRunOperator):
    """Triggers `initialize__<name>` for the tables that conflicts ask to bring back to the publisher's copy."""

    template_fields = (*TriggerDagRunOperator.template_fields, "plan")

    def __init__(self, *, synchronization: str, plan: Any, **kwargs: Any) -> None:
        # Skipped where a try before this one, of the same run, has triggered it already.
        super().__init__(
            trigger_dag_id=f"initialize__{synchronization}",
            logical_date=None,
            skip_when_already_exists=True,
            **kwargs,
        )
        self.synchronization, self.plan = synchronization, plan

    def execute(self, context: Context) -> None:
        """Skips where nothing is asked for, and where the run is not a whole one: the next whole one asks again."""
        plan = RunPlan.model_validate(self.plan)
        if not plan.is_whole:
            raise AirflowSkipException("Only a run of both links and all tables starts a re-initialization.")
        with in_airflow_terms():
            configuration = load(config_path())
            tables = requested(configuration, self.synchronization)
        if not tables:
            raise AirflowSkipException("No conflict asks for a re-initialization.")
        if context["ti"].get_dr_count(self.trigger_dag_id, states=["queued", "running"]):
            raise AirflowSkipException(
                f"A run of {self.trigger_dag_id} is under way; what it leaves, the next run asks for."
            )
        publisher = configuration.synchronizations[self.synchronization].source
        self.trigger_run_id = f"reinitialize__{plan.run_id}"
        self.conf = {
            "how": How.REINITIALIZE.value,
            "from": publisher,
            "tables": tables,
            "requested": True,
        }
        log_event(logger, "re-initialization asked for", synchronization=self.synchronization, tables=tables)
        super().execute(context)
