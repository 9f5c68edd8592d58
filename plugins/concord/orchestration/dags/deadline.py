"""Airflow's deadline on the runs of a DAG: a run that takes longer than the lag wanted is no reason to wait for its
end."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from concord.configuration.configuration import Configuration
from concord.orchestration.tasks.objectives import look_at_late_run


def deadline(configuration: Configuration, name: str) -> DeadlineAlert | None:
    """Of a synchronization or a replication, by its name in the repository; None where no lag is wanted.

    From the moment when the run was queued: a logical date is what runs by hand or by an event do not have.
    """
    wanted = configuration.objectives.get(name)
    if wanted is None or wanted.lag is None:
        return None
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=wanted.lag,
        callback=AsyncCallback(look_at_late_run, kwargs={"name": name}),
    )


class TimedDag(DAG):
    """A DAG that may have a deadline.

    `airflow dags test`, and a terminal that carries a run itself, leave the deadline out: somebody waits for that run.
    Airflow 3.3 could not end it, either (apache/airflow#73428).
    """

    def test(self, *args: Any, **kwargs: Any) -> Any:
        """One run in this process."""
        self.deadline = None
        return super().test(*args, **kwargs)
