"""When snapshots are refreshed: one Airflow DAG for each of them in the configuration."""

from __future__ import annotations

from concord.config import config_path, load
from concord.orchestration.snapshot_dag import snapshot_dag

configuration = load(config_path())
for name in configuration.snapshots:
    globals()[f"snapshot__{name}"] = snapshot_dag(configuration, name)
