"""The imports and preparations of a command, once: `copied_process` copies the process that has imported this.

No connection is open and no thread of Python runs when it is done: a copy would not have them.
"""

import asyncio
import os
import pkgutil
import sys
import threading
from importlib import import_module
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))
main = import_module("concord.__main__")
os.environ |= main._airflow_settings(verbose=False)  # as a command makes them before it imports Airflow
for name in (
    "concord.orchestration.surroundings.airflow_configuration",
    "concord.terminal.command",
    "concord.transmission.steps",
    "airflow.dag_processing.dagbag",
    "spark_jobs.link",
    "pyspark.sql.connect.session",
    *(
        each.name
        for package in ("concord.databases", "concord.orchestration.tasks")
        for each in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
    ),
):
    import_module(name)


async def _first_request() -> httpx.Response:
    """Airflow builds the routes of all versions of its API when it gets its first request: seconds in each copy."""
    from airflow.sdk.execution_time.supervisor import in_process_api_server  # noqa: PLC0415 - after the settings

    client = httpx.AsyncClient(transport=in_process_api_server().atransport, base_url="http://airflow")
    async with client:
        return await client.get("/health")


import_module("tests.given.quick_airflow").check_schemas_once()
assert asyncio.run(_first_request()).is_success
for thread in set(threading.enumerate()) - {threading.main_thread()}:
    thread.join(60)  # those of the event loop end with it, in a moment
assert threading.active_count() == 1
