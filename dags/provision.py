"""When sites are made ready: on demand, by an Airflow DAG."""

from __future__ import annotations

from concord.orchestration.maintenance import provision_dag

provision = provision_dag()
