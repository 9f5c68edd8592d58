"""The environment of the demo's own Airflow and Spark: nothing of the user's gets in, no password gets out."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from concord.machine.java import java_home

PROJECT = Path(__file__).resolve().parents[1]
CONFIG = PROJECT / "config" / "concord.yaml"

#: Another Airflow, Spark, Python or Concord that the shell has set up.
FOREIGN = ("AIRFLOW", "CONCORD_", "SPARK_", "PYSPARK_", "HADOOP_", "PYTHONHOME", "PG")


def environment(home: Path, connections: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for an Airflow whose AIRFLOW_HOME is `home`, with these connections."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        **inherited,
        **_airflow(home),
        **{f"AIRFLOW_CONN_{name.upper()}": value for name, value in connections.items()},
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "CONCORD_CONFIG": str(CONFIG),
        "JAVA_HOME": str(java_home()),
        "PATH": programs,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": f"{PROJECT / 'plugins'}{os.pathsep}{PROJECT}",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def _airflow(home: Path) -> dict[str, str]:
    settings = {
        "CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__UNIT_TEST_MODE": "False",
        "LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "USAGE_DATA_COLLECTION__ENABLED": "False",
    }
    return {"AIRFLOW_HOME": str(home), **{f"AIRFLOW__{name}": value for name, value in settings.items()}}
