"""The first task of a run: it takes the lease, and where another run holds that, it waits without a worker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.configuration import conf

from concord.messages.errors import LeaseHeld
from concord.messages.event_log import logger_named
from concord.orchestration.leases.trigger import OVERDUE, LeaseTrigger
from concord.orchestration.surroundings import waiting_person
from concord.orchestration.tasks import run_steps
from concord.orchestration.tasks.run_plan import SynchronizeParameters

logger = logger_named("concord.lease")


class BeginOperator(BaseOperator):
    """Begins a run of the synchronization; its plan is the task's XCom.

    `deferrable`: wait in the triggerer, not in Airflow's scheduler, which starts the task anew each time that it
    asks. The default is Airflow's, `[operators] default_deferrable`. Where no triggerer carries the waiting, the
    scheduler does.
    """

    def __init__(
        self,
        *,
        synchronization: str,
        asked: SynchronizeParameters | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.synchronization, self.asked = synchronization, asked
        default = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = default if deferrable is None else deferrable

    def execute(self, context: Context) -> dict[str, Any]:
        """The orders of a run of the synchronization. Raises what `run_steps.begin` does."""
        # A try that the scheduler has put off had no triggerer. A terminal's run has no worker to free.
        was_put_off = context.get("task_reschedule_count", 0) > 0
        defers = self.deferrable and not was_put_off and not waiting_person.does_wait()
        put_off = self._to_triggerer if defers else run_steps.to_scheduler
        return run_steps.begin(self.synchronization, context, self.asked, put_off)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> dict[str, Any]:
        """Ask again; when the trigger failed, or no triggerer has carried it, wait by the scheduler from now on."""
        if next_method != TRIGGER_FAIL_REPR:
            return self.execute(context)
        why = (next_kwargs or {}).get("error", "unknown")
        logger.warning("waits by the scheduler: the triggerer did not carry the waiting: %s", why)
        return run_steps.begin(self.synchronization, context, self.asked, run_steps.to_scheduler)

    def _to_triggerer(self, held: LeaseHeld, _pause: timedelta) -> None:
        trigger = LeaseTrigger(synchronization=self.synchronization, holder=str(held.owner))
        self.defer(trigger=trigger, method_name="execute", timeout=OVERDUE)
