"""A DAG run that a person waits for: started by the scheduler where one is alive, else in this very process.

A scheduler takes up every running run of a DAG that is not paused; a run of this process beside it would be executed
twice. So only the scheduler starts such runs. A paused DAG's runs would wait in its queue: these are run here.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from socket import socketpair
from threading import Event, Thread, main_thread
from typing import Any
from uuid import uuid4

import pendulum
from airflow.api.common.trigger_dag import trigger_dag
from airflow.jobs.job import most_recent_job
from airflow.models import DagModel, DagRun
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from sqlalchemy import select, update
from sqlalchemy.exc import DBAPIError

from concord.machine.ending import Ended, by_signals
from concord.messages.connection_words import one_sentence
from concord.messages.errors import AirflowUnavailable
from concord.orchestration.dags.configured import all_dags
from concord.orchestration.surroundings import waiting_person
from spark_jobs.interruption import interrupt_all

#: Seconds between two looks at how far a run is.
PAUSE = 0.5
_ENDED = frozenset({"success", "failed"})

#: Called with the beginning of the run's id, again and again while it runs.
Look = Callable[[str], None]


class Interrupted(AirflowFailException):
    """A signal came: the task ends without another try, and what gives the lease back still runs."""


def is_scheduled(dag_id: str) -> bool:
    """Is a scheduler alive that starts this DAG's runs? Raises AirflowUnavailable."""
    with _airflows_database("Create it with `airflow db migrate`, or set AIRFLOW_HOME to where Airflow is"):
        alive, dag = _scheduler_lives(), _dag(dag_id)
    if not alive:
        return False
    if dag is None or dag.is_stale:
        raise AirflowUnavailable(
            f"Airflow's scheduler runs, and does not know {dag_id}: wait until it has read the DAGs, or mend what"
            " `airflow dags list-import-errors` shows"
        )
    return not dag.is_paused


def is_paused(dag_id: str) -> bool:
    """Does Airflow know that it starts none of this DAG's runs?"""
    try:
        dag = _dag(dag_id)
    except DBAPIError:
        return False
    return dag is not None and dag.is_paused


def by_scheduler(dag_id: str, conf: Mapping[str, Any], person: str, look: Look) -> str:
    """Trigger a run and wait for its end; "success" or "failed". Ctrl-C ends the waiting, not the run.

    Raises AirflowUnavailable where nobody would carry the run on.
    """
    run_id = f"manual__{pendulum.now('UTC').isoformat()}_{uuid4().hex[:8]}"
    with _airflows_database(f"Start it, and see whether Airflow knows the run {run_id}"):
        trigger_dag(
            dag_id,
            run_id=run_id,
            conf=dict(conf),
            triggered_by=DagRunTriggeredByType.CLI,
            triggering_user_name=person,
        )
        while (state := _state(dag_id, run_id)) not in _ENDED:
            look(run_id)
            _refuse_to_wait_in_vain(dag_id, run_id)
            time.sleep(PAUSE)
    look(run_id)
    return state


def _refuse_to_wait_in_vain(dag_id: str, run_id: str) -> None:
    """Raises AirflowUnavailable where no scheduler carries the run on; it stays in Airflow as it is."""
    dag = _dag(dag_id)
    if not _scheduler_lives():
        why = "Airflow's scheduler gives no sign of life any more: start it"
    elif dag is None or dag.is_paused:
        why = "the DAG was paused in Airflow meanwhile: unpause it"
    else:
        return
    raise AirflowUnavailable(f"{why}, and the run {run_id} goes on by itself; or mark that run as failed")


def _scheduler_lives() -> bool:
    """By its heartbeat, as Airflow judges it (`scheduler_health_check_threshold`)."""
    with create_session() as session:
        scheduler = most_recent_job("SchedulerJob", session=session)
        return scheduler is not None and scheduler.is_alive()


def _dag(dag_id: str) -> DagModel | None:
    with create_session() as session:
        return session.get(DagModel, dag_id)


def _state(dag_id: str, run_id: str) -> str:
    with create_session() as session:
        query = select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        return str(session.scalar(query) or "failed")


@contextmanager
def _airflows_database(advice: str) -> Iterator[None]:
    """Raises AirflowUnavailable where Airflow's own database refuses the block."""
    try:
        yield
    except DBAPIError as error:
        refused = f"Airflow's own database cannot be read: {one_sentence(str(error.orig))}"
        raise AirflowUnavailable(f"{refused}. {advice}") from None


def here(dag_id: str, conf: Mapping[str, Any], look: Look) -> str:
    """Run the DAG in this process; "success" or "failed". Raises Ended when a signal has ended it."""
    dag = all_dags()[dag_id]
    moment = pendulum.now("UTC")
    run_id = f"manual__{moment.isoformat()}"
    with (
        _interruptible(dag_id, run_id),
        _airflows_database("Start it, and ask again"),
        waiting_person.waits(),
        _looking(look, run_id),
    ):
        # Airflow deletes a run of the same logical date first; without one, any run that has none.
        run = dag.test(run_after=moment, logical_date=moment, run_conf=dict(conf))
    return str(run.state)


@contextmanager
def _interruptible(dag_id: str, run_id: str) -> Iterator[None]:
    """Airflow takes KeyboardInterrupt in a task for a failure to be tried again; Interrupted is none.

    A second signal ends what gives the lease back: whoever carries the run here gives it back once more.
    """
    heard: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        if number != signal.SIGTERM:
            interrupt_all()  # another thread of the link's may wait for a database, or the link for Spark
            raise Interrupted("interrupted by a signal")

    with suppress(Interrupted), _as_ctrl_c(heard), by_signals(interrupt, signal.SIGINT):
        yield
    if heard:
        _fail(dag_id, run_id)
        raise Ended(heard[0])


@contextmanager
def _as_ctrl_c(heard: list[int]) -> Iterator[None]:
    """Note each signal, and pass SIGTERM on as Ctrl-C: Airflow's tasks have a handler for it that ends no run."""
    told, tells = socketpair()
    tells.setblocking(False)

    def pass_on() -> None:
        while number := told.recv(1):
            heard.append(number[0])
            if number[0] == signal.SIGTERM:
                signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    hearing = Thread(target=pass_on, daemon=True)
    hearing.start()
    before = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        tells.close()
        hearing.join()
        told.close()


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
