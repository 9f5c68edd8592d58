"""When a loser comes back: on demand, by an Airflow DAG."""

from __future__ import annotations

from concord.orchestration.overturn_dag import overturn_dag

overturn_conflict = overturn_dag()
