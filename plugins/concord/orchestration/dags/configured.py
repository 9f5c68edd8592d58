"""Every DAG of a configuration, by its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from airflow.sdk import DAG, get_parsing_context

from concord.configuration.configuration import Configuration
from concord.orchestration.dags.approve import approve_dag
from concord.orchestration.dags.compare import compare_dag, compare_replication_dag
from concord.orchestration.dags.maintenance import (
    initialize_dag,
    log_purge_dag,
    provision_dag,
    tombstone_cleanup_dag,
)
from concord.orchestration.dags.overturn import overturn_dag
from concord.orchestration.dags.replicate import initialize_replication_dag, replicate_dag
from concord.orchestration.dags.resolve import resolve_dag
from concord.orchestration.dags.snapshot import snapshot_dag
from concord.orchestration.dags.synchronize import synchronize_dag
from concord.orchestration.surroundings.airflow_configuration import configuration

Builders = Mapping[str, Callable[[], DAG]]


def all_dags() -> dict[str, DAG]:
    """The DAGs of the configuration, for `globals().update(all_dags())` in a DAG file.

    A task reads its file for the sake of one DAG: then only that one is built. Raises ConfigurationInvalid, which
    Airflow shows as the file's import error.
    """
    builders, asked = _builders(configuration()), get_parsing_context().dag_id
    return {dag_id: build() for dag_id, build in builders.items() if asked not in builders or asked == dag_id}


def _builders(configured: Configuration) -> Builders:
    return {
        **_of_synchronizations(configured),
        **{f"snapshot__{name}": partial(snapshot_dag, configured, name) for name in configured.snapshots},
        **_of_replications(configured),
        "provision": provision_dag,
        "log_purge": log_purge_dag,
        "tombstone_cleanup": partial(tombstone_cleanup_dag, configured),
        "approve_held_runs": approve_dag,
        "resolve_conflicts": resolve_dag,
        "overturn_conflict": overturn_dag,
    }


def _of_synchronizations(configured: Configuration) -> Builders:
    kinds = {"synchronize": synchronize_dag, "initialize": initialize_dag, "compare": compare_dag}
    return {
        f"{kind}__{name}": partial(build, configured, name)
        for name in configured.synchronizations
        for kind, build in kinds.items()
    }


def _of_replications(configured: Configuration) -> Builders:
    kinds = {
        "replicate": replicate_dag,
        "initialize": initialize_replication_dag,
        "compare": compare_replication_dag,
    }
    return {
        f"{kind}__{name}": partial(build, configured, name)
        for name in configured.replications
        for kind, build in kinds.items()
    }
