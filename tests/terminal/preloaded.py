"""All that a command imports, once: `copied_process` copies the process that has imported this."""

import os
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))
main = import_module("concord.__main__")
os.environ |= main._airflow_settings(verbose=False)  # as a command makes them before it imports Airflow
for name in (
    "concord.orchestration.surroundings.airflow_configuration",
    "concord.terminal.command",
    "concord.transmission.steps",
    "airflow.dag_processing.dagbag",
):
    import_module(name)
