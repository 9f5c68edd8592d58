"""Objectives are judged at each run's end, and while no run ends. A notifier tells of one that is missed (S2-10,
S2-11).

A message is sent once when an objective is missed, and once when it is kept again. It is remembered after it was sent.
A task that is killed in between sends it again, and so do two that look at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pendulum
from airflow.sdk import Context
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration, config_path, load
from concord.configuration.objective import ObjectiveSettings
from concord.jobs.link import Direction, link_name
from concord.jobs.replication import configured_name
from concord.messages.errors import ConcordError
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import lag, metrics
from concord.orchestration.tasks.notification import told
from concord.repository import objectives
from concord.repository.models import TransmissionState
from concord.repository.status import transmissions
from concord.rules.objective import Aim, Measured, news

logger = logger_named("concord.objective")


def after_run(engine: Engine, name: str, run_id: str | None, context: Context) -> None:
    """Judge what the run measured, and of links that did not end well how late they are now. Never raises."""
    with _never_in_the_way():
        configuration = load(config_path())
        if name not in configuration.objectives:
            return
        sent = {} if run_id is None else {each.direction: each for each in transmissions(engine, run_id)}
        well = {way: each for way, each in sent.items() if each.state == TransmissionState.SUCCEEDED}
        for way, each in well.items():
            link = _Link(name, Direction(way), configuration.objectives[name])
            measured = Measured(each.lag, each.acquired, each.rows_per_second)
            _judge(engine, link, measured, context, run_has_ended=True)
            metrics.of_objective(name, link.direction, measured, len(_missed(engine, link)))
        _look(engine, configuration, name, context, but=well)


def look(engine: Engine, configuration: Configuration, names: Iterable[str], context: Context) -> None:
    """Judge how late links are although no run of theirs ends. Never raises."""
    for name in names:
        with _never_in_the_way():
            _look(engine, configuration, name, context)


async def look_at_late_run(name: str, context: Context) -> None:
    """The callback of a DAG's deadline, in Airflow's triggerer."""

    def look_now() -> None:
        look(repository(), load(config_path()), [name], context)

    await asyncio.to_thread(look_now)


@dataclass(frozen=True)
class _Link:
    """One that has an objective; its synchronization or replication as the repository names it."""

    synchronization: str
    direction: Direction
    settings: ObjectiveSettings

    def __str__(self) -> str:
        return link_name(configured_name(self.synchronization), self.direction)


def _look(
    engine: Engine, configuration: Configuration, name: str, context: Context, but: Iterable[str] = ()
) -> None:
    if name not in configuration.objectives or set(but) >= set(lag.ways(configuration, name)):
        return
    for way, seconds in lag.lags(engine, configuration, name).items():
        if way not in but:
            link = _Link(name, way, configuration.objectives[name])
            _judge(engine, link, Measured(seconds), context, run_has_ended=False)


def _judge(engine: Engine, link: _Link, measured: Measured, context: Context, *, run_has_ended: bool) -> None:
    judged = link.settings.objective.judged(measured)
    for aim, kept in news(judged, _missed(engine, link), run_has_ended=run_has_ended).items():
        facts = _facts(link, aim, measured, kept=kept)
        log_event(logger, "objective kept again" if kept else "objective missed", **facts)
        through = link.settings.through
        if through is None or told(through, "an objective", facts, context):
            at = (engine, link.synchronization, link.direction, aim)
            objectives.forget_missed(*at) if kept else objectives.keep_missed(*at, pendulum.now("UTC"))


def _missed(engine: Engine, link: _Link) -> set[Aim]:
    """Those of which people have heard."""
    return set(objectives.missed(engine).get(link_name(link.synchronization, link.direction), {}))


def _facts(link: _Link, aim: Aim, found: Measured, *, kept: bool) -> dict[str, str]:
    """The words of a message; no row."""
    wanted = link.settings.objective
    numbers = (
        (_length(found.lag), _length(wanted.lag))
        if aim is Aim.LAG
        else (f"{found.rows_per_second:,.1f}", f"{wanted.rows_per_second:,}")
    )
    subject = f"{link} keeps its {aim} again" if kept else f"{link} misses its {aim}"
    return {
        "link": str(link),
        "objective": str(aim),
        "state": "kept" if kept else "missed",
        "measured": numbers[0],
        "wanted": numbers[1],
        "subject": subject,
        "message": f"{subject}: {numbers[0]}, wanted {numbers[1]}. python -m concord status",
    }


def _length(seconds: float | None) -> str:
    """`0.25 s`, `12 minutes 5 seconds`."""
    length = seconds or 0.0
    return f"{length:.3g} s" if length < 60 else pendulum.duration(seconds=round(length)).in_words()


@contextmanager
def _never_in_the_way() -> Iterator[None]:
    """A run is not to fail for what only tells of it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of whatever kind it is
        said = error.message if isinstance(error, ConcordError) else type(error).__name__
        logger.warning("objectives could not be judged: %s", said)
