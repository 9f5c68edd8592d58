"""Runs of a backfill, and the stamps and positions they work on."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pendulum
from airflow.sdk.api.datamodels._generated import DagRunType

from tests.given.airflow_pair import NAME

MAY, JUNE = pendulum.datetime(2026, 5, 1), pendulum.datetime(2026, 6, 1)

STATE = "SELECT link, history, initialized, floor FROM concord.link_state ORDER BY link"

STAMP = """
UPDATE concord."public.flights" SET changed_at = {at}, vector = jsonb_build_object(origin, jsonb_build_array({at}, 0))
 WHERE flight = {flight}"""

#: A task that Airflow tells of no run that has ended.
ALL_ALIVE = SimpleNamespace(get_dr_count=lambda *_, **__: 0)


def dag_run(run_id: str, run_type: str, start_date: datetime | None = None) -> Any:
    return SimpleNamespace(
        dag_id=f"synchronize__{NAME}",
        run_id=run_id,
        run_type=DagRunType(run_type),
        conf={},
        data_interval_start=MAY,
        data_interval_end=JUNE,
        start_date=start_date or pendulum.now("UTC"),
    )
