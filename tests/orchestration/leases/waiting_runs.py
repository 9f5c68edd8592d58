"""Runs that wait for the lease of another one, which was killed."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pendulum
import pytest
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType

from concord.orchestration.leases import keeping
from concord.orchestration.leases.owners import LeaseOwner
from concord.repository.lease import Lease
from tests.given.airflow_pair import NAME, Pair

DAG_ID = f"synchronize__{NAME}"

MINUTE = timedelta(minutes=1)


def killed(pair: Pair, state: DagRunState) -> tuple[DagRun, Lease]:
    """A run of which nothing is left but its lease, and Airflow's record of it in this state."""
    # With a logical date: Airflow's dag.test() deletes the record of an earlier run that has none.
    now = pendulum.now("UTC")
    run = DagRun(
        dag_id=DAG_ID,
        run_id=f"manual__{now.isoformat()}",
        run_type=DagRunType.MANUAL,
        logical_date=now,
        run_after=now,
        start_date=now,
        state=state,
    )
    with create_session(scoped=False) as session:
        session.add(run)
        session.commit()
        session.refresh(run)
        session.expunge(run)
    return run, keeping.take(pair.repository, NAME, owner(run, "tests"))


def owner(run: DagRun, airflow: str) -> str:
    return str(LeaseOwner(f"{DAG_ID}/{run.run_id}", airflow))


def set_state(run: DagRun, state: DagRunState) -> None:
    with create_session() as session:
        session.query(DagRun).filter_by(dag_id=run.dag_id, run_id=run.run_id).update({"state": state})


@contextmanager
def once_it_waits(caplog: pytest.LogCaptureFixture, do: Any, *arguments: Any) -> Iterator[None]:
    """Do something as soon as the run of the block has said that it waits."""
    ended = threading.Event()

    def watch() -> None:
        while not waits(caplog) and not ended.wait(0.1):
            pass
        do(*arguments)

    with caplog.at_level(logging.INFO):
        watching = threading.Thread(target=watch)
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()


def waits(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("waits for the lease")]
