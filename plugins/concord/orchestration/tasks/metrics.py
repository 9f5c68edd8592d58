"""The metrics that runs send, through Airflow's own client: StatsD, Datadog or OpenTelemetry, as Airflow is set.

Each metric has the tag `synchronization`, and `direction` where it is a link's. Plain StatsD knows no tags; as
Airflow itself does, each is sent a second time under a name that holds them, while `[metrics] legacy_names_on` is
on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pendulum
from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats
from sqlalchemy import Engine

from concord.jobs.link import Direction, TransmissionReport
from concord.messages.event_log import logger_named
from concord.repository.runs import last_synchronized
from concord.repository.status import links
from concord.rules.objective import Measured

logger = logger_named("concord.metrics")

#: Rows of one run of a link by outcome, each a counter. How many wait in all is asked of the sites: by `status`.
ROWS = ("acquired", "applied", "lost", "conflicts", "held", "quarantined")


def of_link(engine: Engine, report: TransmissionReport, duration: timedelta) -> None:
    """A link's rows, how long it took, and its lag; nothing of a plan. Never raises."""
    if report.plan_only:
        return
    tags = {"synchronization": report.synchronization, "direction": str(report.direction)}
    with _never_in_the_way():
        for outcome in ROWS:
            _send("incr", "concord.link", outcome, report.total(outcome), tags)
        _send("incr", "concord.link", "failed", 0 if report.error_code is None else 1, tags)
        _send("timing", "concord.link", "duration", duration, tags)
        for link in links(engine):
            if (link.synchronization, link.direction) == (report.synchronization, report.direction):
                _send_lag("concord.link", link.last_started_at, tags)


def of_objective(synchronization: str, direction: Direction, measured: Measured, missed: int) -> None:
    """A run of a link that has an objective: its lag and rate, and how many parts of it are missed. Never raises."""
    tags = {"synchronization": synchronization, "direction": str(direction)}
    found = {"measured_lag": measured.lag, "rows_per_second": measured.rows_per_second, "missed": missed}
    with _never_in_the_way():
        for name, value in found.items():
            if value is not None:
                _send("gauge", "concord.link", name, value, tags)


def of_synchronization(engine: Engine, name: str) -> None:
    """How long ago the last whole run that was completed began. Never raises."""
    with _never_in_the_way():
        _send_lag("concord.synchronization", last_synchronized(engine, name), {"synchronization": name})


def _send_lag(prefix: str, began: datetime | None, tags: dict[str, str]) -> None:
    """Seconds since then: what had been committed before it began, has been carried. Nothing before a first one."""
    if began is not None:
        _send("gauge", prefix, "lag", (pendulum.now("UTC") - pendulum.instance(began)).total_seconds(), tags)


def _send(kind: str, prefix: str, name: str, value: Any, tags: dict[str, str]) -> None:
    send = getattr(stats, kind)
    send(f"{prefix}.{name}", value, tags=tags)
    if conf.getboolean("metrics", "legacy_names_on"):
        send(".".join((prefix, *tags.values(), name)), value)


@contextmanager
def _never_in_the_way() -> Iterator[None]:
    """A run is not to fail for what only tells of it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a client of any kind may be configured
        logger.warning("metrics were not sent: %s", type(error).__name__)
