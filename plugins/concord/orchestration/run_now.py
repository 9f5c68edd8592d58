"""A DAG run that a person waits for: started by the scheduler where one is alive, else in this very process.

A scheduler takes up every running run of a DAG that is not paused; a run of this process beside it would be executed
twice. So only the scheduler starts such runs. A paused DAG's runs would wait in its queue: these are run here.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NoReturn
from uuid import uuid4

import pendulum
from airflow.api.common.trigger_dag import trigger_dag
from airflow.dag_processing.dagbag import DagBag
from airflow.jobs.job import most_recent_job
from airflow.models import DagModel, DagRun
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError

from concord.connection_words import one_sentence
from concord.errors import AirflowUnavailable

#: Seconds between two looks at how far a run is.
PAUSE = 0.5
_ENDED = frozenset({"success", "failed"})

#: Called with the beginning of the run's id, again and again while it runs.
Look = Callable[[str], None]


class Interrupted(AirflowFailException):
    """A person pressed Ctrl-C: the task ends without another try, and what gives the lease back still runs."""


def is_scheduled(dag_id: str) -> bool:
    """Is a scheduler alive that starts this DAG's runs? Raises AirflowUnavailable."""
    try:
        with create_session() as session:
            scheduler = most_recent_job("SchedulerJob", session=session)
            if scheduler is None or not scheduler.is_alive():
                return False
            dag = session.get(DagModel, dag_id)
    except DBAPIError as error:
        raise AirflowUnavailable(
            f"Airflow's own database cannot be read: {one_sentence(str(error.orig))}. Create it with"
            " `airflow db migrate`, or set AIRFLOW_HOME to where Airflow is"
        ) from None
    if dag is None or dag.is_stale:
        raise AirflowUnavailable(
            f"Airflow's scheduler runs, and does not know {dag_id}: wait until it has read the DAGs, or mend what"
            " `airflow dags list-import-errors` shows"
        )
    return not dag.is_paused


def by_scheduler(dag_id: str, conf: Mapping[str, Any], person: str, look: Look) -> str:
    """Trigger a run and wait for its end; "success" or "failed". Ctrl-C ends the waiting, not the run."""
    run_id = f"manual__{pendulum.now('UTC').isoformat()}_{uuid4().hex[:8]}"
    trigger_dag(
        dag_id,
        run_id=run_id,
        conf=dict(conf),
        triggered_by=DagRunTriggeredByType.CLI,
        triggering_user_name=person,
    )
    while (state := _state(dag_id, run_id)) not in _ENDED:
        look(run_id)
        time.sleep(PAUSE)
    look(run_id)
    return state


def _state(dag_id: str, run_id: str) -> str:
    with create_session() as session:
        query = select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        return str(session.scalar(query) or "failed")


def here(file: Path, dag_id: str, conf: Mapping[str, Any], look: Look) -> str:
    """Run the DAG in this process; "success" or "failed". Raises KeyboardInterrupt when Ctrl-C has ended it."""
    dag = DagBag(str(file), collect_dags=True).dags[dag_id]
    moment = pendulum.now("UTC")
    run_id = f"manual__{moment.isoformat()}"
    with _interruptible() as interrupted, _looking(look, run_id):
        try:
            # Airflow deletes a run of the same logical date first; without one, any run that has none.
            run = dag.test(run_after=moment, logical_date=moment, run_conf=dict(conf))
        except Interrupted:
            _fail(dag_id, run_id)
            raise KeyboardInterrupt from None
    if interrupted.is_set():
        raise KeyboardInterrupt
    return str(run.state)


@contextmanager
def _interruptible() -> Iterator[Event]:
    """Airflow takes KeyboardInterrupt in a task for a failure to be tried again; this one is none."""
    interrupted = Event()

    def interrupt(_number: int, _frame: object) -> NoReturn:
        interrupted.set()
        raise Interrupted("interrupted by Ctrl-C")

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _looking(look: Look, run_id: str) -> Iterator[None]:
    """Look while the block runs, and once after it."""
    done = Event()

    def again() -> None:
        while not done.wait(PAUSE):
            look(run_id)

    looking = Thread(target=again, daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()
    look(run_id)


def _fail(dag_id: str, beginning: str) -> None:
    """Interrupted between two tasks: a scheduler that starts later must not go on with the run."""
    with create_session() as session:
        begun = DagRun.dag_id == dag_id, DagRun.run_id.startswith(beginning, autoescape=True)
        session.execute(update(DagRun).where(*begun).values(state="failed"))
