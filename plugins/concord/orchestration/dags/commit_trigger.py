"""The start of a replication's run at a commit: its publisher's log is looked at, and no worker is taken (S2-30)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from typing import Any

from airflow.sdk import AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from concord.configuration.configuration import Configuration
from concord.databases.contract.watched_log import LogWatch, WatchedLog
from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.messages.errors import ConcordError
from concord.messages.event_log import logger_named
from concord.orchestration.surroundings.connections import credentials

logger = logger_named("concord.watch")

#: Seconds until a publisher that does not answer is asked again: the first time, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Seconds until a transaction that a run has left waiting starts another one: the first time, and at most.
FIRST_REPEAT, LONGEST_REPEAT = 60.0, 3_600.0
#: A look that takes long, as where other databases write much, is followed by a pause of so many times its length.
_REST = 10.0


class CommitTrigger(BaseEventTrigger):
    """Runs in Airflow's triggerer for as long as the replication is not paused.

    It fires when a transaction waits that no run was started for. Its parts are stored and shown: ids of connections,
    never a login. Values are flat, since Airflow compares them to know the trigger again.
    """

    def __init__(
        self,
        *,
        replication: str,
        replication_set: str,
        publishers: Sequence[str],
        connections: Sequence[str],
        insecure: Sequence[str],
        poll: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.replication, self.replication_set = replication, replication_set
        self.publishers, self.connections = list(publishers), list(connections)
        self.insecure, self.poll = list(insecure), poll

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kept = ("replication", "replication_set", "publishers", "connections", "insecure", "poll")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in kept}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event for each first transaction that waits, with its publisher."""
        woken: asyncio.Queue[str] = asyncio.Queue()
        ways = zip(Direction, self.publishers, self.connections, strict=False)
        watches = [asyncio.create_task(self._watch(*way, woken)) for way in ways]
        try:
            while True:
                found = {"replication": self.replication, "publisher": await woken.get()}
                yield TriggerEvent(found)  # type: ignore[no-untyped-call]
        finally:
            for each in watches:
                each.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _watch(
        self, direction: Direction, publisher: str, connection: str, woken: asyncio.Queue[str]
    ) -> None:
        """Watch one log, whatever happens to its site. The login is asked for anew: it may have been mended."""
        log = WatchedLog(self.replication, self.replication_set, direction, len(self.publishers) > 1)
        pause = FIRST_PAUSE
        while True:
            try:
                watch = await asyncio.to_thread(self._opened, publisher, connection, log)
                with closing(watch):
                    async for _ in self._looks(watch, publisher, woken):
                        pause = FIRST_PAUSE
            except Exception as error:  # noqa: BLE001 - a watch that ended would stay silent, and Airflow content
                logger.warning(
                    "%s: commits of %s start no run now, the schedule does; the site is asked again in %g s: %s",
                    self.replication, publisher, pause, _said(error),
                )  # fmt: skip
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _opened(self, publisher: str, connection: str, log: WatchedLog) -> LogWatch:
        login = credentials(connection, insecure=publisher in self.insecure)
        return dialect(login.dialect).replications.watch(login, log)

    async def _looks(self, watch: LogWatch, publisher: str, woken: asyncio.Queue[str]) -> AsyncIterator[None]:
        """A transaction that still waits after its run starts another one, later and later."""
        last, again, repeat = None, 0.0, FIRST_REPEAT
        while True:
            began = time.monotonic()
            commit = await asyncio.to_thread(watch.look)
            if commit is not None and commit != last:
                last, again, repeat = commit, began + FIRST_REPEAT, FIRST_REPEAT
                woken.put_nowait(publisher)
            elif commit is not None and began >= again:
                repeat = min(2 * repeat, LONGEST_REPEAT)
                again = began + repeat
                woken.put_nowait(publisher)
            yield
            await asyncio.sleep(max(self.poll, _REST * (time.monotonic() - began)))


def _said(error: Exception) -> str:
    return error.message if isinstance(error, ConcordError) else type(error).__name__


def commit_watchers(configuration: Configuration, name: str) -> list[AssetWatcher]:
    """The event that updates the asset of a replication when users of a publisher commit; none unless it says
    `watch`."""
    replication = configuration.replications[name]
    if replication.watch is None:
        return []
    publishers = [source for source, _ in replication.directions]
    sites = [configuration.sites[publisher] for publisher in publishers]
    trigger = CommitTrigger(
        replication=name,
        replication_set=replication.replication_set,
        publishers=publishers,
        connections=[str(site.log_reader) for site in sites],
        insecure=[each for each in publishers if configuration.sites[each].insecure],
        poll=replication.watch.poll.total_seconds(),
    )
    return [AssetWatcher(name=f"commits__{name}", trigger=trigger)]
