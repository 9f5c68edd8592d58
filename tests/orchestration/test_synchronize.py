"""A synchronization through Airflow itself: LinkOperator, spark-submit, two databases, the repository."""

import pytest

from concord.repository import status
from tests.orchestration.conftest import Pair, states

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
