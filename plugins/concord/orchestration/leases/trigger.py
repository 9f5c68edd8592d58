"""Waits in Airflow's triggerer, in no worker's slot, until another run may have given its lease back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async
from sqlalchemy import Engine

from concord.messages.errors import ConcordError
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.leases.owners import LeaseOwner
from concord.orchestration.surroundings.process import is_gone
from concord.orchestration.surroundings.repository_connection import repository
from concord.repository.status import synchronizations

#: How often it asks: soon at first, as most runs take seconds, then less often.
SOON, PAUSE = timedelta(seconds=2), timedelta(seconds=15)
#: After so long the task itself asks, and says anew whom it waits for.
LONGEST = timedelta(minutes=4)
#: No triggerer carries a trigger that has not ended by then.
OVERDUE = timedelta(minutes=5)


class LeaseTrigger(BaseTrigger):
    """Ends when `holder` no longer has the lease, is known to have ended, or `LONGEST` is over.

    It takes nothing: the task then tries to. Its parts are stored and shown: two names.
    """

    def __init__(self, *, synchronization: str, holder: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.synchronization, self.holder = synchronization, holder

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kept = {"synchronization": self.synchronization, "holder": self.holder}
        return f"{__name__}.{type(self).__name__}", kept

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, which says why."""
        yield TriggerEvent(await self._why())  # type: ignore[no-untyped-call]

    async def _why(self) -> str:
        """A repository that does not answer is the task's to complain of."""
        try:
            engine = await sync_to_async(repository)()
            try:
                return await self._waited(engine)
            finally:
                await sync_to_async(engine.dispose)()
        except ConcordError as error:
            return error.code

    async def _waited(self, engine: Engine) -> str:
        began, pause = pendulum.now("UTC"), SOON
        while pendulum.now("UTC") - began < LONGEST:
            if await sync_to_async(self._is_over)(engine):
                return "the lease may be free"
            await asyncio.sleep(pause.total_seconds())
            pause = min(PAUSE, 1.5 * pause)
        return "waited for long"

    def _is_over(self, engine: Engine) -> bool:
        now = pendulum.now("UTC")
        holds = any(
            (each.name, each.owner) == (self.synchronization, self.holder)
            and each.lease_expires_at is not None
            and each.lease_expires_at > now
            for each in synchronizations(engine)
        )
        if not holds or is_gone(LeaseOwner.parse(self.holder).process):
            return True
        return LeaseHolder(RuntimeTaskInstance).has_ended(self.holder)
