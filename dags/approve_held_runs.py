"""When people are asked about runs that the brakes hold: on demand, by an Airflow DAG."""

from __future__ import annotations

from concord.orchestration.approve_dag import approve_dag

approve_held_runs = approve_dag()
