"""A synchronization through Airflow itself: LinkOperator, two databases, the repository.

Links that are submitted to Spark are those of tasks/test_secrets.py.
"""

import logging
from datetime import timedelta

import psycopg
import pytest
from airflow.models.dagrun import DagRun
from sqlalchemy import update

from concord.orchestration.tasks.run_plan import RunPlan
from concord.repository import status
from concord.repository.models import Synchronization
from tests.given.airflow_pair import NAME, Pair, Site, states

TABLES_OF_CONCORD = """
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND nspname IN ('public', 'concord', 'concord_staging') ORDER BY 1"""

pytestmark = [pytest.mark.airflow, pytest.mark.spark]


def test_a_run_carries_a_change_each_way_and_records_run_transmissions_and_conflict(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight IN (1, 3)")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 2")
    pair.capetown.run("UPDATE flights SET delay = 30 WHERE flight = 3")
    run = pair.run()
    assert run.state == "success"
    assert set(states(run).values()) == {"success"}
    query = "SELECT flight, delay FROM flights WHERE delay <> 0 ORDER BY flight"
    assert pair.london.run(query) == pair.capetown.run(query) == [(1, 10), (2, 20), (3, 30)]
    [recorded] = status.last_runs(pair.repository)
    assert (recorded.state, recorded.run_type, recorded.dag_run_id) == ("succeeded", "manual", run.run_id)
    forward, reverse = status.transmissions(pair.repository, recorded.id)
    assert [forward.direction, reverse.direction] == ["forward", "reverse"]
    assert (forward.acquired, forward.applied, forward.lost) == (2, 1, 1)
    [conflict] = status.conflict_counts(pair.repository)
    assert (conflict.table_name, conflict.conflict_type, conflict.count) == (
        "public.flights",
        "update_update",
        1,
    )
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.last_started_at == recorded.started_at
    assert synchronization.owner is None


def test_a_plan_writes_nothing_at_the_sites_and_marks_nothing_as_done(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    before = [written(site) for site in (pair.london, pair.capetown)]
    assert pair.run(conf={"plan_only": True}).state == "success"
    assert [written(site) for site in (pair.london, pair.capetown)] == before
    [recorded] = status.last_runs(pair.repository)
    assert (recorded.state, recorded.plan_only) == ("succeeded", True)
    forward, reverse = status.transmissions(pair.repository, recorded.id)
    assert (forward.applied, reverse.applied) == (1, 0)
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.last_started_at is None


def test_one_direction_of_one_table_is_carried_alone_and_marks_nothing_as_done(pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 10 WHERE flight = 1")
    pair.london.run("UPDATE airlines SET name = 'changed'")
    pair.capetown.run("UPDATE flights SET delay = 20 WHERE flight = 2")
    run = pair.run(conf={"direction": "forward", "tables": ["public.flights"]})
    assert run.state == "success"
    expected = {"begin": "success", "forward_link": "success", "reverse_link": "skipped"}
    assert states(run) == {**expected, "complete": "success", "release": "success"}
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]
    assert pair.capetown.run("SELECT name FROM airlines") == [("United",)]
    assert pair.london.run("SELECT delay FROM flights WHERE flight = 2") == [(0,)]
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.last_started_at is None


def test_a_run_reads_the_last_ones_start_logs_it_and_carries_it_while_positions_drive(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """S1-18: the time is told; what is sent comes from the position, however wrong the time may be."""
    assert pair.run().state == "success"
    [first] = status.last_runs(pair.repository)
    far_ahead = first.started_at + timedelta(days=365)
    with psycopg.connect(pair.london.uri) as late:
        late.execute(
            "UPDATE flights SET delay = 10 WHERE flight = 1"
        )  # stamped now, committed after the next run
        with caplog.at_level(logging.INFO):
            second = pair.run(conf={"direction": "forward"})
        assert carried(second) == (first.started_at, 0)
    assert f'run begins synchronization="{NAME}"' in caplog.text
    assert f'last_started_at="{first.started_at}"' in caplog.text
    with pair.repository.begin() as repository:
        repository.execute(update(Synchronization).values(last_started_at=far_ahead))
    assert carried(pair.run()) == (far_ahead, 1)
    assert pair.capetown.run("SELECT delay FROM flights WHERE flight = 1") == [(10,)]


def carried(run: DagRun) -> tuple[object, int]:
    """The time that the run's plan carries, and how many rows its forward link acquired."""
    began = run.get_task_instance("begin")
    assert began is not None
    plan = began.xcom_pull(task_ids="begin")
    acquired = began.xcom_pull(task_ids="forward_link")["acquired"]
    return RunPlan.model_validate(plan).last_started_at, acquired


def written(site: Site) -> list[tuple[object, ...]]:
    """Every row of every table that Concord may write, with the transaction that wrote it."""
    tables = [name for (name,) in site.run(TABLES_OF_CONCORD)]
    assert "concord.link_state" in tables
    return [
        row for table in tables for row in site.run(f"SELECT '{table}', t.xmin::text, t::text FROM {table} t")
    ]
