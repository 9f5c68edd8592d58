"""`compare__<name>`: of a pair, which it may repair, and of a replication's two sites."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Context, Param

from concord.configuration.configuration import Configuration, config_path, load
from concord.messages.pace import logged
from concord.orchestration.dags.maintenance import on_demand
from concord.orchestration.dags.maintenance_pages import compare_page, compare_replication_page
from concord.orchestration.dags.replicate import ReplicationOperator
from concord.orchestration.dags.synchronize import LINK_TIMEOUT
from concord.orchestration.leases import owners
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import parameters, replication_compare
from concord.orchestration.tasks.compare import CompareOperator, said
from concord.orchestration.tasks.replication_compare import CompareReplicationParameters


class CompareReplicationOperator(ReplicationOperator):
    """Says what differs between a replication's two sites; the driver is the Airflow task itself."""

    def execute(self, context: Context) -> dict[str, Any]:
        """Counts of each table: no row data. Differences are no failure of the task."""
        dag_run = context["dag_run"]
        with in_airflow_terms():
            asked = parameters.read(CompareReplicationParameters, dag_run.conf)
            how = (asked, owners.of_run(dag_run), logged(self.log.info))
            report = replication_compare.compare(repository(), load(config_path()), self.replication, *how)
        return said(report)


def compare_dag(configuration: Configuration, name: str) -> DAG:
    """`compare__<name>`: says what differs between both sites, and repairs it when asked."""
    pair = configuration.synchronizations[name]
    params = {
        "tables": parameters.tables_param([table.name for table in configuration.tables(name)]),
        "repair": Param(
            "none",
            enum=["none", "plan", "apply"],
            description="none: compare; plan: say what a repair would do; apply: do it, while the pair's links wait.",
        ),
        "prefer": Param(
            None,
            enum=[None, "source", "target"],
            description="Whose row stays where no version decides; empty for site priority, then name.",
        ),
    }
    description = f"Says where {pair.source} and {pair.target} differ, and repairs it when asked."
    with on_demand(f"compare__{name}", description, params, compare_page(name, description, params)) as dag:
        CompareOperator(task_id="compare", synchronization=name, execution_timeout=LINK_TIMEOUT)
    return dag


def compare_replication_dag(configuration: Configuration, name: str) -> DAG:
    """`compare__<name>`: says what differs between both sites."""
    tables = [table.name for table in configuration.replication(name).tables]
    params = {"tables": parameters.tables_param(tables)}
    replication = configuration.replications[name]
    description = f"Says where {replication.publisher} and {replication.subscriber} differ."
    doc_md = compare_replication_page(name, description, params)
    with on_demand(f"compare__{name}", description, params, doc_md) as dag:
        CompareReplicationOperator(task_id="compare", replication=name)
    return dag
