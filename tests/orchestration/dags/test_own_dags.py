"""docs/dags.md: every DAG that it shows, run by a real Airflow; and what a group does beside Concord's own DAG."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow import settings
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, get_parsing_context

from concord.configuration.configuration import config_path
from concord.dags import ConcordTaskGroup, all_dags
from concord.messages.errors import ParametersRefused
from concord.repository import status
from tests.conftest import PROJECT
from tests.given.airflow_pair import NAME, Pair, states

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

SHOWN = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "dags.md").read_text(), re.DOTALL)
TASKS = ["begin", "forward_link", "reverse_link", "complete", "release"]


@pytest.fixture
def bag(pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DagBag:
    """Airflow's DAGs of a folder with one file for each example of the page."""
    folder = tmp_path / "dags"
    folder.mkdir()
    for number, example in enumerate(SHOWN):
        (folder / f"example_{number}.py").write_text(example)
    monkeypatch.setattr(settings, "DAGS_FOLDER", str(folder))
    found = DagBag(str(folder))
    assert found.import_errors == {}
    return found


def run(bag: DagBag, dag_id: str, **conf: Any) -> dict[str, str]:
    return states(bag.dags[dag_id].test(logical_date=None, run_conf=conf or None))


def test_the_first_example_makes_every_dag_and_the_others_are_there_too(bag: DagBag) -> None:
    own = {
        "refresh_reports",
        "publish_flights",
        "after_capetown_flights",
        "compare_at_night",
        "analyze_at_london",
    }
    assert set(bag.dags) == set(all_dags()) | own
    assert {f"synchronize__{NAME}", f"initialize__{NAME}", f"compare__{NAME}", "provision"} < set(bag.dags)


def test_a_group_in_a_dag_of_ones_own_carries_both_ways_and_what_follows_waits_for_it(
    bag: DagBag, pair: Pair
) -> None:
    pair.london.run("UPDATE flights SET delay = 7 WHERE flight = 7")
    pair.capetown.run("UPDATE flights SET delay = 8 WHERE flight = 8")

    ended = run(
        bag, "refresh_reports", region="emea"
    )  # the team's own parameter, which Concord does not read

    assert ended == {f"{NAME}.{each}": "success" for each in TASKS} | {"refresh": "success"}
    for site in (pair.london, pair.capetown):
        assert site.run("SELECT flight, delay FROM flights WHERE delay > 0 ORDER BY 1") == [(7, 7), (8, 8)]
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.owner is None, "the lease was given back"
    [recorded] = status.last_runs(pair.repository, NAME)
    assert recorded.state == "succeeded"


def test_what_follows_a_group_does_not_run_where_a_link_failed_and_the_lease_is_free(
    bag: DagBag, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CAPETOWN_APPLIER")

    ended = run(bag, "refresh_reports")

    assert ended[f"{NAME}.forward_link"] == "failed"
    assert ended["refresh"] == "upstream_failed"
    assert ended[f"{NAME}.release"] == "success"
    [synchronization] = status.synchronizations(pair.repository)
    assert synchronization.owner is None
    [recorded] = status.last_runs(pair.repository, NAME)
    assert recorded.state == "failed"


def test_a_group_of_one_way_and_one_table_leaves_the_rest(bag: DagBag, pair: Pair) -> None:
    pair.london.run("UPDATE flights SET delay = 7 WHERE flight = 7; UPDATE airlines SET name = 'U'")
    pair.capetown.run("UPDATE flights SET delay = 8 WHERE flight = 8")

    ended = run(bag, "publish_flights")

    assert ended["publish.reverse_link"] == "skipped"
    assert pair.capetown.run("SELECT flight, delay FROM flights WHERE delay > 0 ORDER BY 1") == [
        (7, 7),
        (8, 8),
    ]
    assert pair.capetown.run("SELECT name FROM airlines") == [("United",)]
    assert pair.london.run("SELECT flight, delay FROM flights WHERE delay > 0") == [(7, 7)]


def test_the_other_examples_run(bag: DagBag, pair: Pair) -> None:
    assert run(bag, "after_capetown_flights") == {"count": "success"}
    assert run(bag, "compare_at_night") == {"compare": "success"}


def test_a_statement_runs_at_intervals_and_once_for_all_that_were_missed(bag: DagBag, pair: Pair) -> None:
    """S4-161, S4-162, S4-163, S4-164: Airflow has the start, the interval and each success."""
    dag = bag.dags["analyze_at_london"]
    assert (dag.start_date, dag.catchup) == (datetime(2026, 1, 1, tzinfo=UTC), False)
    assert dag.schedule == timedelta(minutes=60)
    pair.london.run("INSERT INTO flights VALUES (21, 0, 'one more')")
    assert run(bag, "analyze_at_london") == {"analyze": "success"}
    assert pair.london.run("SELECT reltuples FROM pg_class WHERE oid = 'flights'::regclass") == [(21,)]


def test_a_task_builds_the_one_dag_that_it_belongs_to(bag: DagBag, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", f"compare__{NAME}")
    assert get_parsing_context().dag_id == f"compare__{NAME}"
    assert list(all_dags()) == [f"compare__{NAME}"]


def test_a_program_that_a_task_of_somebody_elses_starts_sees_every_dag(
    bag: DagBag, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Airflow leaves the name of the task's DAG in the environment that its children inherit
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "refresh_reports")
    assert f"synchronize__{NAME}" in all_dags()


def test_a_group_of_an_unknown_synchronization_or_table_is_an_import_error(pair: Pair) -> None:
    with DAG("mine", schedule=None):
        with pytest.raises(ParametersRefused, match="there is no synchronization 'london_capetwon'"):
            ConcordTaskGroup("london_capetwon")
        with pytest.raises(ParametersRefused, match=r"there is no table 'public\.fligths'"):
            ConcordTaskGroup(NAME, tables=["public.fligths"])


def test_airflows_own_configuration_may_name_the_file_and_the_environment_goes_before(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CONCORD__CONFIGURATION", str(tmp_path / "nowhere.yaml"))
    assert f"synchronize__{NAME}" in all_dags()
    monkeypatch.setenv("AIRFLOW__CONCORD__CONFIGURATION", str(pair.path))
    monkeypatch.delenv("CONCORD_CONFIG")
    monkeypatch.chdir(tmp_path / "..")
    assert f"synchronize__{NAME}" in all_dags()
    assert config_path() == pair.path, "what the tasks of this process ask for"
