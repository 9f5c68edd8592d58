"""How a Spark application is started: where, with which Java options, memory and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from concord.environment import of_airflow
from concord.errors import ConnectionRefused
from concord.java import java_home
from concord.orchestration.job_files import PROJECT, JobFiles

MEMORY = "2g"
_JOBS = PROJECT / "spark_jobs"
#: A link's driver lives for seconds: the serial collector and the quick compiler start twice as fast.
SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


def require_client_mode(connection_id: str, master: str, deploy_mode: str | None) -> None:
    """The driver must run on this machine, where the job file is. Raises ConnectionRefused."""
    known = master.startswith(("local", "spark://"))
    if not known or deploy_mode not in (None, "", "client"):
        raise ConnectionRefused(
            f"connection {connection_id!r}: the master is {master}, deploy mode {deploy_mode or 'client'}; a link's"
            " driver reads its logins from a file of this machine, so use local[n] or spark://host:port in client mode"
        )


def is_local(master: str) -> bool:
    """Whether the executors run inside the driver."""
    return master.startswith("local")


def library(master: str, files: JobFiles[Any]) -> str | None:
    """What other machines' Python must be sent; on this one PYTHONPATH leads to our code, compiled already."""
    return None if is_local(master) else str(files.library())


def configuration(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Spark properties; what the operator was given goes before ours."""
    options = f"-Dlog4j2.configurationFile={(_JOBS / 'log4j2.properties').as_uri()}"
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


def environment(files: JobFiles[Any]) -> dict[str, str]:
    """Java, paths for the application, and nothing of Airflow's: Spark needs none of its secrets (S5).

    Raises ConnectionRefused when there is no Java.
    """
    hidden = dict.fromkeys(of_airflow(), "")
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return {
        **hidden,
        "JAVA_HOME": _java_home(),
        "CONCORD_JOB": str(files.job),
        "CONCORD_REPORT": str(files.report),
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(PROJECT), str(PROJECT / "plugins"), os.environ.get("PYTHONPATH")])
        ),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python),
    }


def spark_submit() -> str:
    """Our own program of this name, which starts Python first."""
    return str(_JOBS / "spark-submit")


def _java_home() -> str:
    """As `make` finds it. Raises ConnectionRefused when there is no Java."""
    try:
        return str(java_home())
    except FileNotFoundError as error:
        raise ConnectionRefused(f"there is {error}") from None
