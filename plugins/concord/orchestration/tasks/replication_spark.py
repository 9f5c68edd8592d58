"""Spark for a replication that maps values: its driver is the process that replays, an Airflow task or a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import Any

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from concord.jobs.replication import ReplicationDefinition
from concord.orchestration.surroundings.connections import airflow_connection
from concord.orchestration.tasks import spark_settings
from spark_jobs.application import Spark

#: The connection of links as well.
CONNECTION = "spark_default"


@contextmanager
def spark_for(replication: ReplicationDefinition) -> Iterator[Spark | None]:
    """None where no rows ever need it."""
    if not replication.maps or replication.spark_from is None:
        yield None
        return
    with spark_of(replication.name) as spark:
        yield spark


@contextmanager
def spark_of(name: str) -> Iterator[Spark]:
    """Begun with the first rows that need it, and ended with the block.

    Called, it raises SparkUnavailable or ConnectionRefused.
    """
    with ExitStack() as stack:
        opened: list[Spark] = []

        def spark() -> Any:
            if not opened:
                opened.append(stack.enter_context(_opened(name)))
            return opened[0]()

        yield spark


def _opened(name: str) -> AbstractContextManager[Spark]:
    """Over a connection of either type. Raises ConnectionRefused."""
    connection = airflow_connection(CONNECTION)
    if connection.conn_type == SparkConnectHook.conn_type:
        from spark_jobs.connect import connected  # noqa: PLC0415 - most replications need no Spark

        return connected(SparkConnectHook(CONNECTION).get_connection_url(), f"concord replication {name}")
    from spark_jobs.session import OfThisProcess  # noqa: PLC0415 - likewise

    master, extra = _master(), connection.extra_dejson
    arguments = ["--master", master, "--name", f"concord replication {name}"]
    arguments += ["--driver-memory", spark_settings.memory(extra, "driver")]
    arguments += ["--executor-memory", spark_settings.memory(extra, "executor")]
    for setting in spark_settings.configuration(master, {}).items():
        arguments += ["--conf", "=".join(setting)]
    return closing(OfThisProcess([*arguments, "pyspark-shell"], spark_settings.environment()))


def _master() -> str:
    """Raises ConnectionRefused where the driver would run elsewhere."""
    submission = SparkSubmitHook(conn_id=CONNECTION)._connection
    spark_settings.require_client_mode(CONNECTION, submission["deploy_mode"])
    return str(submission["master"])
