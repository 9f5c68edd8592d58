"""How a Spark application is submitted: with which program, Java options, memory and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import concord
from concord.machine.environment import of_airflow
from concord.machine.java import java_home
from concord.messages.errors import ConnectionRefused
from concord.orchestration.tasks.job_files import JobFiles
from spark_jobs.application import module
from spark_jobs.settings import CONNECT_MODE, is_local

#: Of a driver or an executor of whose memory the connection says nothing.
MEMORY = "2g"
#: A link's driver lives for seconds: the serial collector and the quick compiler start twice as fast.
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def require_client_mode(connection_id: str, deploy_mode: str | None) -> None:
    """The driver must run on this machine, where the job file is; its executors may run anywhere.

    Raises ConnectionRefused.
    """
    if deploy_mode not in (None, "", "client"):
        raise ConnectionRefused(
            f"connection {connection_id!r}: deploy mode {deploy_mode}; a link's driver reads its logins from a file of"
            " this machine: set deploy-mode to client, on any master, or use a connection of type spark_connect"
        )


def memory(extra: Mapping[str, Any], of: Literal["driver", "executor"]) -> str:
    """As the connection's extra says (`driver-memory`, `executor-memory`), else 2 GiB."""
    return str(extra.get(f"{of}-memory", MEMORY))


def library(master: str, files: JobFiles[Any]) -> str | None:
    """The code that other machines' Python must be sent; on this one PYTHONPATH leads to our code, compiled
    already."""
    return None if is_local(master) else str(files.library())


def configuration(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Spark properties; what the operator was given goes before ours."""
    options = f"-Dlog4j2.configurationFile={module('link').with_name('log4j2.properties').as_uri()}"
    if is_local(master):
        options += f" {SHORT_LIVED}"
    ours = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.defaultJavaOptions": options,
    }
    if is_local(master):
        ours |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {**ours, **given}


def environment() -> dict[str, str]:
    """Of spark-submit: ours, with Java and our code, and nothing of Airflow's. Spark needs none of its secrets.

    Raises ConnectionRefused when there is no Java.
    """
    kept = {name: value for name, value in os.environ.items() if name not in (*of_airflow(), CONNECT_MODE)}
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    places = [*_places(), os.environ.get("PYTHONPATH", "")]
    return {
        **kept,
        "JAVA_HOME": _java_home(),
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python),
    }


def _places() -> list[str]:
    """Where our packages are imported from."""
    found = (module("link").parents[1], Path(str(concord.__file__)).parents[1])
    return list(dict.fromkeys(map(str, found)))


def spark_submit() -> str:
    """Spark's own program: the one that came with this Python's pyspark, else the one on PATH."""
    sibling = Path(sys.executable).with_name("spark-submit")
    return str(sibling) if sibling.exists() else "spark-submit"


def _java_home() -> str:
    """As `make` finds it. Raises ConnectionRefused when there is no Java."""
    try:
        return str(java_home())
    except FileNotFoundError as error:
        raise ConnectionRefused(f"there is {error}") from None
