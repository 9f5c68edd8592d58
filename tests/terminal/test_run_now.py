"""`python -m concord synchronize` waits for a run of the scheduler's for as long as somebody carries it on (27, 16).

Airflow knows a scheduler only by its row in the table of jobs, and how fresh its heartbeat is. That row is made and
kept here, for no test wants the run itself.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import pytest
from airflow.jobs.job import Job
from airflow.models import DagModel
from airflow.models.dagrun import DagRun
from airflow.sdk import timezone
from airflow.utils.session import create_session
from sqlalchemy import delete, select, update

from tests.conftest import AIRFLOW_HOME
from tests.given.airflow_pair import NAME, Pair
from tests.given.typed_commands import Terminal

pytestmark = pytest.mark.airflow

DAG_ID = f"synchronize__{NAME}"
SAID = f"{NAME}: the running Airflow carries this run out\n"
#: Seconds without a heartbeat after which Airflow takes a scheduler for dead.
THRESHOLD = 3


class Scheduler:
    """One that beats until it is killed, and takes up no run."""

    def __init__(self) -> None:
        with create_session() as session:
            job = Job(state="running", latest_heartbeat=timezone.utcnow())
            job.job_type = "SchedulerJob"
            session.add(job)
            session.flush()
            self._job = job.id
        self._killed = Event()
        Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._killed.wait(0.5):
            with create_session() as session:
                beat = update(Job).where(Job.id == self._job)
                session.execute(beat.values(latest_heartbeat=timezone.utcnow()))

    def kill(self) -> None:
        """As SIGKILL does it: nothing is written any more."""
        self._killed.set()

    def forget(self) -> None:
        """No other test is to find it."""
        self.kill()
        with create_session() as session:
            session.execute(delete(Job).where(Job.id == self._job))
            session.execute(delete(DagRun).where(DagRun.dag_id == DAG_ID, DagRun.state == "queued"))


@pytest.fixture
def scheduler(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scheduler]:
    monkeypatch.setenv("AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD", str(THRESHOLD))
    assert pair.run(conf={"plan_only": True}).state == "success"  # now Airflow knows the DAG
    pause(False)
    at_work = Scheduler()
    yield at_work
    at_work.forget()
    pause(True)


def pause(paused: bool) -> None:
    with create_session() as session:
        session.execute(update(DagModel).where(DagModel.dag_id == DAG_ID).values(is_paused=paused))


def queued() -> list[str]:
    with create_session() as session:
        query = select(DagRun.run_id).where(DagRun.dag_id == DAG_ID, DagRun.state == "queued")
        return list(session.scalars(query))


@contextmanager
def once_triggered(do: object, *arguments: object) -> Iterator[None]:
    """Do something as soon as the run is queued."""

    def wait() -> None:
        while not queued():
            time.sleep(0.1)
        do(*arguments)  # type: ignore[operator]

    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    yield
    waiting.join()


def ended(why: str) -> tuple[int, str]:
    """Status and lines of a command that waits no more for the one run."""
    [run] = queued()
    return 1, f"{SAID}{why}, and the run {run} goes on by itself; or mark that run as failed\n"


def test_a_scheduler_that_dies_after_the_trigger_ends_the_waiting_with_one_line(
    scheduler: Scheduler, terminal: Terminal
) -> None:
    began = time.monotonic()
    with once_triggered(scheduler.kill):
        status, _, said = terminal("synchronize", NAME)
    assert THRESHOLD - 1 < time.monotonic() - began < THRESHOLD + 100, "it beat within a second before"
    assert (status, said) == ended("Airflow's scheduler gives no sign of life any more: start it")


def test_a_dag_that_is_paused_after_the_trigger_ends_the_waiting_with_one_line(
    scheduler: Scheduler, terminal: Terminal
) -> None:
    with once_triggered(pause, True):
        status, _, said = terminal("synchronize", NAME)
    assert (status, said) == ended("the DAG was paused in Airflow meanwhile: unpause it")


def test_a_database_of_airflows_that_ends_meanwhile_is_told_in_one_line(
    scheduler: Scheduler, terminal: Terminal
) -> None:
    with once_triggered(rename, "dag_run", "gone"):
        try:
            status, _, said = terminal("synchronize", NAME)
        finally:
            rename("gone", "dag_run")
    assert status == 1
    assert said.startswith(f"{SAID}Airflow's own database cannot be read: ")
    assert said.count("\n") == 2
    assert "see whether Airflow knows the run manual__" in said


def rename(table: str, name: str) -> None:
    with closing(sqlite3.connect(AIRFLOW_HOME / "airflow.db", timeout=60)) as database:
        database.execute("PRAGMA legacy_alter_table = ON")  # what refers to it refers to it afterwards
        database.execute(f"ALTER TABLE {table} RENAME TO {name}")
