"""The start of a run between two times of the schedule: users' commits at either site of a synchronization."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from airflow.sdk import AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from concord.configuration.configuration import Configuration
from concord.databases.contract.arrivals import WatchedLink
from concord.databases.registry import dialect
from concord.jobs.link import Direction, link_name
from concord.messages.errors import ConcordError
from concord.messages.event_log import logger_named
from concord.orchestration.surroundings.connections import credentials
from concord.values.debounce import folded

logger = logger_named("concord.watch")

#: Seconds until a site that does not answer is asked again: the first time, and at most.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

Arrival = tuple[str, frozenset[str]]


class ChangeTrigger(BaseEventTrigger):
    """Runs in Airflow's triggerer for as long as the synchronization is not paused.

    It fires when something is pending that users of a site have committed. Its parts are stored and shown: ids of
    connections, never a login. Values are flat, since Airflow compares them to know the trigger again.
    """

    def __init__(  # noqa: PLR0913 - Airflow stores it flat
        self,
        *,
        synchronization: str,
        sites: Sequence[str],
        connections: Sequence[str],
        insecure: Sequence[str],
        tables: Sequence[str],
        listen: bool,
        poll: float | None,
        debounce: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.synchronization = synchronization
        self.sites, self.connections, self.insecure = list(sites), list(connections), list(insecure)
        self.tables = list(tables)
        self.listen, self.poll, self.debounce = listen, poll, debounce

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kept = ("synchronization", "sites", "connections", "insecure", "tables", "listen", "poll", "debounce")
        return f"{__name__}.{type(self).__name__}", {name: getattr(self, name) for name in kept}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event for each burst of commits, with the tables that it changed, by site."""
        woken: asyncio.Queue[Arrival] = asyncio.Queue()
        watches = [asyncio.create_task(self._watch(*watched, woken)) for watched in self._links()]
        try:
            async for together in folded(woken, self.debounce):
                found = {"synchronization": self.synchronization, "pending": _by_site(together)}
                yield TriggerEvent(found)  # type: ignore[no-untyped-call]
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    def _links(self) -> Iterator[tuple[WatchedLink, str]]:
        """The two links, each with the connection of the site that it leaves."""
        source, target = self.sites
        ends = {Direction.FORWARD: (source, target), Direction.REVERSE: (target, source)}
        for (direction, (site, peer)), connection in zip(ends.items(), self.connections, strict=True):
            name = link_name(self.synchronization, direction)
            yield WatchedLink(name, site, peer, frozenset(self.tables)), connection

    async def _watch(self, link: WatchedLink, connection: str, woken: asyncio.Queue[Arrival]) -> None:
        """Watch one site, whatever happens to it. The login is asked for anew each time: it may have been mended."""
        pause = FIRST_PAUSE
        while True:
            try:
                login = await sync_to_async(credentials)(connection, insecure=link.source in self.insecure)
                database = await sync_to_async(dialect)(
                    login.dialect
                )  # its import would hold up other triggers
                async for tables in database.arrivals(login, link, listen=self.listen, poll=self.poll):
                    pause = FIRST_PAUSE
                    if tables:
                        woken.put_nowait((link.source, tables))
            except Exception as error:  # noqa: BLE001 - a watch that ended would stay silent, and Airflow content
                logger.warning(
                    "%s: commits of %s start no run now, the schedule does; the site is asked again in %g s: %s",
                    self.synchronization, link.source, pause, _said(error),
                )  # fmt: skip
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _said(error: Exception) -> str:
    return error.message if isinstance(error, ConcordError) else type(error).__name__


def _by_site(together: Sequence[Arrival]) -> dict[str, list[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for site, tables in together:
        found[site] |= tables
    return {site: sorted(tables) for site, tables in sorted(found.items())}


def watchers(configuration: Configuration, name: str) -> list[AssetWatcher]:
    """The event that updates the asset of a synchronization when users of its sites commit; none unless it says
    `watch`."""
    pair = configuration.synchronizations[name]
    if (watch := pair.watch) is None:
        return []
    settings = [configuration.sites[site] for site in pair.sites]
    trigger = ChangeTrigger(
        synchronization=name,
        sites=pair.sites,
        connections=[site.reader_connection for site in settings],
        insecure=[site for site in pair.sites if configuration.sites[site].insecure],
        tables=[table.name for table in configuration.tables(name)],
        listen=watch.listen,
        poll=watch.poll.total_seconds() if watch.poll else None,
        debounce=watch.debounce.total_seconds(),
    )
    return [AssetWatcher(name=f"commits__{name}", trigger=trigger)]
