"""Whether the holder of a lease that a run waits for has ended, as far as Airflow knows, and what a person may do."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from airflow.sdk.exceptions import AirflowRuntimeError

from concord.orchestration.leases.owners import LeaseOwner, airflow_name

_OVER = ["success", "failed"]
_NOTHING = "nothing: this run begins when that one ends; if that one was killed, "
_OF_A_DAG_RUN = _NOTHING + "mark it as failed in Airflow, and this run begins within seconds"
_OF_ANOTHER_AIRFLOW = _NOTHING + "this run begins when its lease ends; its Airflow is another one"
_OF_A_TERMINAL = _NOTHING + "this run begins when its lease ends"


class CountsRuns(Protocol):
    """The context that Airflow gives a task, and its class gives a trigger."""

    @staticmethod
    def get_dr_count(
        dag_id: str,
        logical_dates: list[datetime] | None = None,
        run_ids: list[str] | None = None,
        states: list[str] | None = None,
    ) -> int: ...


class LeaseHolder:
    """Asks Airflow, as a task or a trigger may, about the run whose name (`owners`) a lease carries.

    An equal id proves nothing: another Airflow may call a run the same, which is alive.
    """

    def __init__(self, airflow: CountsRuns) -> None:
        self._airflow = airflow

    def has_ended(self, owner: str) -> bool:
        """Is it a DAG run of this Airflow, which knows it to have ended? In doubt it has not."""
        holder = LeaseOwner.parse(owner)
        return self._is_ours(holder) and self._is_known(holder, _OVER)

    def remedy(self, owner: str) -> str:
        """The remedy of a person who does not want to wait for it."""
        holder = LeaseOwner.parse(owner)
        if not holder.airflow:
            return _OF_A_TERMINAL
        ours = self._is_ours(holder) and self._is_known(holder, None)
        return _OF_A_DAG_RUN if ours else _OF_ANOTHER_AIRFLOW

    def _is_ours(self, holder: LeaseOwner) -> bool:
        try:
            return bool(holder.airflow) and holder.airflow == airflow_name()
        except AirflowRuntimeError:
            return False

    def _is_known(self, holder: LeaseOwner, states: list[str] | None) -> bool:
        dag_id, _, run_id = holder.name.partition("/")
        try:
            return self._airflow.get_dr_count(dag_id, run_ids=[run_id], states=states) > 0
        except AirflowRuntimeError:  # the API server does not answer: the run waits, as for one that is alive
            return False
