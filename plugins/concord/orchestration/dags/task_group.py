"""One synchronization as a group of tasks in a DAG of a team's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from airflow.sdk import TaskGroup

from concord.orchestration.dags.synchronize import RETRIES, STEP_TIMEOUT, synchronize_tasks
from concord.orchestration.surroundings.airflow_configuration import configuration
from concord.orchestration.tasks.jobs import synchronization_name
from concord.orchestration.tasks.run_plan import SynchronizeParameters


class ConcordTaskGroup(TaskGroup):
    """The tasks of `synchronize__<name>`: begin, both links, complete; the lease always given back.

    Each run carries what has arrived since the synchronization's last run, whatever ran that; a run waits for the
    lease while another one holds it. The DAG's own conf and data interval change nothing. Tasks after the group wait
    for `complete`. Raises ParametersRefused for a name or table that the configuration does not have.
    """

    def __init__(
        self,
        synchronization: str,
        *,
        group_id: str | None = None,
        direction: Literal["both", "forward", "reverse"] = "both",
        tables: Sequence[str] | None = None,
        plan_only: bool = False,
        default_args: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        configured = configuration()
        name = synchronization_name(configured, synchronization)
        chosen = None if tables is None else list(tables)
        asked = SynchronizeParameters(direction=direction, tables=chosen, plan_only=plan_only)
        asked.check_tables([table.name for table in configured.tables(name)])
        settings: Any = {"execution_timeout": STEP_TIMEOUT, **RETRIES, **(default_args or {})}
        super().__init__(group_id or name, default_args=settings, **kwargs)
        with self:
            synchronize_tasks(configured, name, asked)
