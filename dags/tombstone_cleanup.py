"""When tombstones go: daily, by an Airflow DAG."""

from __future__ import annotations

from concord.orchestration.maintenance import tombstone_cleanup_dag

tombstone_cleanup = tombstone_cleanup_dag()
