"""Concord's additions to Airflow itself, found through an entry point or the plugins folder.

Airflow's scheduler imports it before its local executor forks the processes that tasks are forked from. So do the
workers of Celery and of the edge executor. The modules imported here are in their memory when they begin. That is a
second less for every task that reads a DAG. It is another one for every link that asks a Connect server for a
session.
"""

from __future__ import annotations

import sys

from airflow.plugins_manager import AirflowPlugin

import concord.dags

__all__ = ["ConcordPlugin", "concord"]

#: The commands of Airflow whose processes fork tasks.
_FORKING = ("scheduler", "celery", "edge")

if sys.argv[1:2] and sys.argv[1] in _FORKING:
    import spark_jobs.connect
    import spark_jobs.link  # noqa: F401
    from concord.databases import registry

    registry.import_all()


class ConcordPlugin(AirflowPlugin):
    """Makes Concord show up under Airflow's plugins; the console's pages are registered here."""

    name = "concord"
