"""How long a change has waited at each link's source until now, asked of the sites (S2-11)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.contract.status import Pending
from concord.databases.registry import dialect
from concord.jobs.link import Direction, link_name
from concord.jobs.replication import configured_name, of_replication
from concord.messages.errors import ConcordError
from concord.orchestration.tasks import jobs
from concord.orchestration.tasks.replication_standing import Known, Standing, standings
from concord.repository.status import links
from concord.rules.objective import seconds_until, waits_since


def carried(configuration: Configuration, site: str) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The links that lead away from the site, each with its tables' row filters."""
    for name, pair in configuration.synchronizations.items():
        if site in pair.sites:
            direction = Direction.FORWARD if site == pair.source else Direction.REVERSE
            tables = configuration.tables(name)
            filters = {table.name: table.where.fingerprint if table.where else None for table in tables}
            yield link_name(name, direction), filters


def last_starts(engine: Engine) -> dict[str, datetime | None]:
    """By link: the start of its last completed transmission."""
    return {
        link_name(each.synchronization, Direction(each.direction)): each.last_started_at
        for each in links(engine)
    }


def waiting_since(
    configuration: Configuration, name: str, direction: Direction, last_start: datetime | None
) -> datetime | None:
    """The moment since which a change may have waited for this link of a synchronization; None is unknown."""
    source, _ = jobs.ends(configuration, name, direction)
    link = link_name(name, direction)
    try:
        access = jobs.site_access(configuration, source)
        asked = {link: dict(carried(configuration, source))[link]}
        pending = dialect(access.dialect).status.pending(access, asked).get(link)
    except ConcordError:
        pending = None
    return since(configuration, name, pending, last_start)


def since(
    configuration: Configuration, name: str, pending: Pending | None, last_start: datetime | None
) -> datetime | None:
    """The same by the source's answer; None where it gave none. Only the next run counts edits that an application
    marks, or that a log tells of."""
    registers = any(table.tracking or table.by_log for table in configuration.tables(name))
    if pending is None or registers:
        return last_start
    return waits_since(pendulum.now("UTC"), pending.rows, pending.oldest, last_start)


def behind(found: Standing, last_start: datetime | None) -> float | None:
    """Seconds, of one direction of a replication; where an end does not answer, since all was known to be there."""
    if found.seconds_behind is not None:
        return found.seconds_behind
    current_at = None if found.level is None else found.level.current_at
    known = [each for each in (current_at, last_start) if each is not None]
    return seconds_until(pendulum.now("UTC"), max(known, default=None))


def ways(configuration: Configuration, name: str) -> list[Direction]:
    """Those of a synchronization or a replication by its name in the repository."""
    return configuration.replications[configured_name(name)].ways if of_replication(name) else list(Direction)


def lags(engine: Engine, configuration: Configuration, name: str) -> dict[Direction, float | None]:
    """Seconds until now, by direction, of a synchronization or a replication by its name in the repository."""
    started = last_starts(engine)
    if of_replication(name):
        configured, known = configured_name(name), Known.of(engine)
        found = zip(Direction, standings(configuration, configured, known, paused=False), strict=False)
        return {way: behind(each, started.get(link_name(name, way))) for way, each in found}
    waits = {
        way: waiting_since(configuration, name, way, started.get(link_name(name, way))) for way in Direction
    }
    return {way: seconds_until(pendulum.now("UTC"), each) for way, each in waits.items()}
