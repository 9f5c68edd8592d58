"""The DAG by which a person brings back what lost a conflict."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task

from concord.configuration.configuration import config_path, load
from concord.orchestration.dags.page import page
from concord.orchestration.dags.synchronize import START, STEP_TIMEOUT
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import overturning, parameters


class OverturnParameters(parameters.Parameters):
    """A person's words to overturn a conflict."""

    conflict: str
    even_if_changed: bool = False


_PARAMS = {
    "conflict": Param(
        "", type="string", description="The beginning of its id, as `conflicts list` shows it."
    ),
    "even_if_changed": Param(
        False, type="boolean", description="Bring it back although the row is no longer what won."
    ),
}


def _page() -> str:
    return page(
        [
            "Brings back what lost one conflict, at the site that decided it. Every site follows with its next run."
        ],
        "by hand.",
        [
            "`python -m concord conflicts list` for the id, and `conflicts what-if` for what it would change;",
            "`docs/ledger.md` in Concord's directory.",
        ],
        _PARAMS,
    )


def overturn_dag() -> DAG:
    """`overturn_conflict`: brings the loser of one conflict back; every site follows with its next run."""
    with DAG(
        "overturn_conflict",
        description="Brings back what lost a conflict.",
        schedule=None,
        start_date=START,
        catchup=False,
        params=_PARAMS,
        default_args={"execution_timeout": STEP_TIMEOUT},
        doc_md=_page(),
        tags=["concord", "conflicts"],
    ) as dag:

        @task(retries=0)  # a person asked, and is told at once why not
        def overturn() -> dict[str, Any]:
            dag_run = get_current_context()["dag_run"]
            person = dag_run.triggering_user_name or f"{dag_run.dag_id}/{dag_run.run_id}"
            with in_airflow_terms():
                asked = parameters.read(OverturnParameters, dag_run.conf)
                entry, done = overturning.overturn(
                    repository(),
                    load(config_path()),
                    asked.conflict,
                    person,
                    although_changed=asked.even_if_changed,
                )
            return {"conflict": entry.id, "site": entry.site, "version": dict(done.version)}

        overturn()
    return dag
