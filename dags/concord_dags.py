"""Every DAG of Concord's configuration, for Airflow."""

from __future__ import annotations

from concord.dags import all_dags

globals().update(all_dags())
