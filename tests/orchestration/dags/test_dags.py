"""The DAGs that the files in dags/ make, and what Airflow may run of plugins/."""

import importlib
import os
import queue
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag

from concord.orchestration.tasks.link import LinkOperator
from tests.conftest import PROJECT
from tests.given.airflow_pair import CONFIGURATION

pytestmark = pytest.mark.airflow


@pytest.fixture
def bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DagBag:
    path = tmp_path / "concord.yaml"
    path.write_text(CONFIGURATION)
    monkeypatch.setenv("CONCORD_CONFIG", str(path))
    return DagBag(str(PROJECT / "dags"))


def test_every_pair_has_its_dags_and_the_maintenance_has_its_own(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert {f"{kind}__london_capetown" for kind in ("synchronize", "initialize", "compare")} < set(bag.dags)
    assert {"provision", "log_purge", "tombstone_cleanup"} < set(bag.dags)


def test_every_dag_has_a_page_that_tells_its_runs_its_parameters_and_where_to_look_next(bag: DagBag) -> None:
    assert len(bag.dags) >= 9
    for dag_id, dag in bag.dags.items():
        page = str(dag.doc_md)
        assert "**Runs:**" in page, dag_id
        assert "**Where to look next:**\n\n- " in page, dag_id
        for name in dag.params:
            described = dag.params.get_param(name).description
            assert described, f"{dag_id}: {name}"
            assert f"| `{name}` |" in page, f"{dag_id}: {name}"
            assert described in page, f"{dag_id}: {name}"


def test_a_page_names_one_asset_however_many_tables_there_are(bag: DagBag) -> None:
    page = str(bag.dags["synchronize__london_capetown"].doc_md)
    assert "such as `concord://capetown/public.flights`" in page
    assert page.count("concord://capetown/") == 1


def test_a_synchronization_is_begin_forward_reverse_complete_and_the_release_of_its_lease(
    bag: DagBag,
) -> None:
    dag = bag.dags["synchronize__london_capetown"]
    ordered = [task.task_id for task in dag.topological_sort()]
    assert ordered == ["begin", "forward_link", "reverse_link", "complete", "release"]
    assert [task.task_id for task in dag.tasks if task.is_teardown] == ["release"]
    # With on_failure_fail_dagrun the run of a failed link ends as a success
    assert not dag.get_task("release").on_failure_fail_dagrun


def test_a_link_takes_as_many_slots_of_the_pool_of_the_site_that_it_reads_as_it_may_have_readers_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "concord.yaml"
    path.write_text(
        CONFIGURATION.replace("{connection: capetown,", "{pool: far away, readers: 5, connection: capetown,")
    )
    monkeypatch.setenv("CONCORD_CONFIG", str(path))
    tasks = DagBag(str(PROJECT / "dags")).dags["synchronize__london_capetown"].tasks
    pools = {task.task_id: (task.pool, task.pool_slots) for task in tasks}
    assert pools.pop("reverse_link") == ("far away", 5)
    assert set(pools.values()) == {("default_pool", 1)}


def test_runs_neither_overlap_nor_catch_up_but_may_backfill(bag: DagBag) -> None:
    # max_active_runs does not hold for backfills, the lease does (test_backfill.py)
    dag = bag.dags["synchronize__london_capetown"]
    assert (dag.max_active_runs, dag.catchup, dag.dagrun_timeout) == (1, False, None)
    assert dag.allowed_run_types is None
    assert all(task.execution_timeout for task in dag.tasks)


def test_a_mistake_in_the_configuration_is_an_import_error_with_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "concord.yaml"
    path.write_text(CONFIGURATION.replace("target: capetown", "target: capetwon"))
    monkeypatch.setenv("CONCORD_CONFIG", str(path))
    [error] = DagBag(str(PROJECT / "dags")).import_errors.values()
    assert "concord.yaml:10: synchronizations.london_capetown.target" in error
    assert "did you mean 'capetown'" in error


def test_a_synchronization_from_a_site_to_itself_makes_no_dag_and_the_others_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S4-175
    path = tmp_path / "concord.yaml"
    path.write_text(
        CONFIGURATION + "  london_london: {replication_set: flights, source: london, target: london}\n"
    )
    monkeypatch.setenv("CONCORD_CONFIG", str(path))
    bag = DagBag(str(PROJECT / "dags"))
    assert bag.import_errors == {}
    assert [name for name in bag.dags if "london_london" in name] == []
    assert "synchronizations.london_london: london is both source and target" in str(
        bag.dags["synchronize__london_capetown"].doc_md
    )


def test_environment_variables_are_no_template(bag: DagBag) -> None:
    # Rendered templates are stored and shown
    assert "env_vars" not in LinkOperator.template_fields


def test_airflow_runs_one_file_of_plugins_and_shadows_no_module() -> None:
    # It would run every file as a top-level module named by its stem
    plugins, errors = plugins_manager._get_plugins()
    assert errors == {}
    assert [str(plugin.name) for plugin in plugins if plugin.name == "concord"] == ["concord"]
    standard = Path(sysconfig.get_path("stdlib"))
    assert Path(str(queue.__file__)).is_relative_to(standard)
    assert Path(str(importlib.import_module("secrets").__file__)).is_relative_to(standard)


#: A task's process and a DAG, in a process that stands where the scheduler stands when it makes ready for tasks.
READING = """
import sys
from airflow import plugins_manager
plugins_manager.ensure_plugins_loaded()
from airflow.dag_processing.dagbag import BundleDagBag
before = {*sys.modules}
sys.path.insert(0, sys.argv[1])
import concord_dags
print(sorted(name for name in {*sys.modules} - before if not name.startswith("airflow.")))
"""


def test_a_task_imports_nothing_more_than_the_scheduler_has_in_memory() -> None:
    """It would take a second, in each task of a run."""
    read = subprocess.run(
        [sys.executable, "-c", READING, PROJECT / "dags"],
        env={**os.environ, "CONCORD_CONFIG": str(PROJECT / "config" / "concord.yaml")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert read.stdout.splitlines()[-1] == "['concord_dags']"
