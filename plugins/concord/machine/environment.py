"""Airflow's own part of a process's environment."""

from __future__ import annotations

import os

#: The names of Airflow's own settings and connections; they hold passwords.
_OF_AIRFLOW = ("AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__")


def of_airflow() -> list[str]:
    """The names of this process's variables that no Spark application needs, and none may have."""
    return [name for name in os.environ if name.startswith(_OF_AIRFLOW)]
