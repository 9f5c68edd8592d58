"""When people are asked about held conflicts: on demand, by an Airflow DAG."""

from __future__ import annotations

from concord.orchestration.resolve_dag import resolve_dag

resolve_conflicts = resolve_dag()
