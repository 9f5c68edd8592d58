"""When synchronizations run: one Airflow DAG for each pair in the configuration."""

from __future__ import annotations

from concord.config import config_path, load
from concord.orchestration.synchronize import synchronize_dag

configuration = load(config_path())
for name in configuration.synchronizations:
    globals()[f"synchronize__{name}"] = synchronize_dag(configuration, name)
