"""The environment of the demo's own Airflow and Spark: nothing of the user's gets in, no password gets out."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from embedded.java import java_home

PROJECT = Path(__file__).resolve().parents[1]
CONFIG = PROJECT / "config" / "concord.yaml"

#: Another Airflow, Spark, Python or Concord that the shell has set up.
_FOREIGN = ("AIRFLOW", "CONCORD_", "SPARK_", "PYSPARK_", "HADOOP_", "PYTHONHOME", "PG")

#: Two cores and a small job: a fast start matters more than the last optimization.
_SPARK_DEFAULTS = """\
spark.ui.enabled                 false
spark.sql.shuffle.partitions     2
spark.driver.extraJavaOptions    -XX:+UseSerialGC -XX:TieredStopAtLevel=1
"""
_SPARK_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
"""


def environment(home: Path, connections: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for an Airflow whose AIRFLOW_HOME is `home`, with these connections."""
    spark = _spark_configuration(home)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
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
        "SPARK_CONF_DIR": str(spark),
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


def _spark_configuration(home: Path) -> Path:
    directory = home / "spark"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "spark-defaults.conf").write_text(_SPARK_DEFAULTS)
    (directory / "log4j2.properties").write_text(_SPARK_LOGGING)
    return directory
