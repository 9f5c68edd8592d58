"""What Concord adds to Airflow itself, found through an entry point or the plugins folder.

Airflow's scheduler imports it before its local executor forks the processes that tasks are forked from. What is
imported here is in their memory when they read a DAG: a second less for every task.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

import concord.dags

__all__ = ["ConcordPlugin", "concord"]


class ConcordPlugin(AirflowPlugin):
    """Makes Concord show up under Airflow's plugins; the console's pages are registered here."""

    name = "concord"
