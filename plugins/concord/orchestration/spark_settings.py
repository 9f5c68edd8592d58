"""How a Spark application is started: where, with which Java options, memory and environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concord.errors import ConnectionRefused
from concord.orchestration.job_files import JobFiles

MEMORY = "2g"
#: A link's driver lives for seconds: the serial collector and the quick compiler start twice as fast.
_SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
#: What Airflow's own settings and connections are called in the environment; they hold passwords.
_OF_AIRFLOW = ("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__")


def require_client_mode(connection_id: str, master: str, deploy_mode: str | None) -> None:
    """The driver must run on this machine, where the job file is. Raises ConnectionRefused."""
    known = master.startswith(("local", "spark://"))
    if not known or deploy_mode not in (None, "", "client"):
        raise ConnectionRefused(
            f"connection {connection_id!r}: the master is {master}, deploy mode {deploy_mode or 'client'}; a link's"
            " driver reads its logins from a file of this machine, so use local[n] or spark://host:port in client mode"
        )


def configuration(master: str, files: JobFiles[Any], given: Mapping[str, str]) -> dict[str, str]:
    """Spark properties; what the operator was given goes before ours."""
    options = f"-Dlog4j2.configurationFile={files.logging.as_uri()}"
    if master.startswith("local"):
        options += f" {_SHORT_LIVED}"
    ours = {"spark.ui.enabled": "false", "spark.driver.defaultJavaOptions": options}
    return {**ours, **given}


def environment(files: JobFiles[Any]) -> dict[str, str]:
    """Paths for the application, and nothing of Airflow's: Spark needs none of its secrets (S5)."""
    hidden = {name: "" for name in os.environ if name.startswith(_OF_AIRFLOW)}
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    return {
        **hidden,
        "CONCORD_JOB": str(files.job),
        "CONCORD_REPORT": str(files.report),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON", python),
    }


def spark_submit() -> str:
    """The program beside our Python, else the one on PATH. Raises ConnectionRefused when it cannot run."""
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise ConnectionRefused(
            "Spark finds no Java: set JAVA_HOME to Java 17 or later where Airflow's tasks run"
        )
    beside = Path(sys.executable).with_name("spark-submit")
    program = str(beside) if beside.exists() else shutil.which("spark-submit")
    if program is None:
        raise ConnectionRefused(
            "there is no spark-submit; install requirements.txt where Airflow's tasks run"
        )
    return program
