"""When pairs are compared: on demand, by one Airflow DAG for each pair in the configuration."""

from __future__ import annotations

from concord.config import config_path, load
from concord.orchestration.maintenance import compare_dag

configuration = load(config_path())
for name in configuration.synchronizations:
    globals()[f"compare__{name}"] = compare_dag(configuration, name)
