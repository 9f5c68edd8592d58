"""What Concord adds to Airflow itself: the only file of this directory that Airflow runs."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin


class ConcordPlugin(AirflowPlugin):
    """Makes Concord show up under Airflow's plugins; the console's pages are registered here."""

    name = "concord"
