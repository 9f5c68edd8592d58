"""Who holds a lease that another run waits for: a DAG run, dead or alive, as far as Airflow knows; or a terminal."""

from __future__ import annotations

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowRuntimeError

_OVER = ["success", "failed"]
_NOTHING = "nothing: this run begins when that one ends; if that one was killed, "
_OF_A_DAG_RUN = _NOTHING + "mark it as failed in Airflow, and this run begins within seconds"
_OF_A_TERMINAL = _NOTHING + "this run begins when its lease ends"


class LeaseHolder:
    """Asks Airflow, as a task may, about the run whose owner's name (`run_lease.owner_of`) a lease carries."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def has_ended(self, owner: str) -> bool:
        """Is it a DAG run that Airflow knows to have ended? In doubt it has not."""
        return self._is_known(owner, _OVER)

    def remedy(self, owner: str) -> str:
        """What a person may do who does not want to wait for it."""
        return _OF_A_DAG_RUN if self._is_known(owner, None) else _OF_A_TERMINAL

    def _is_known(self, owner: str, states: list[str] | None) -> bool:
        dag_id, _, run_id = owner.partition("/")
        try:
            return self._context["ti"].get_dr_count(dag_id, run_ids=[run_id], states=states) > 0
        except AirflowRuntimeError:  # the API server does not answer: the run waits, as for one that is alive
            return False
