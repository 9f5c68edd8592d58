"""What Concord adds to Airflow itself: the only file of this directory that Airflow runs.

Airflow's scheduler reads it before its local executor forks the processes that tasks are forked from. What is imported
here is in their memory when they read a DAG: a second less for every task.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

import concord.orchestration.synchronize

__all__ = ["ConcordPlugin", "concord"]


class ConcordPlugin(AirflowPlugin):
    """Makes Concord show up under Airflow's plugins; the console's pages are registered here."""

    name = "concord"
