"""When old records go: by an Airflow DAG that asks the purge calendar."""

from __future__ import annotations

from concord.orchestration.maintenance import log_purge_dag

log_purge = log_purge_dag()
