"""A comparison of a replication's two sites: in the process of whoever asks, and its result in the repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

import pendulum
from pydantic import Field
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.comparison import CompareReplicationJob, CompareReport
from concord.messages.errors import ConcordError, LeaseHeld, WriteContended
from concord.messages.event_log import logger_named
from concord.messages.pace import Tell, silent
from concord.orchestration.tasks import parameters
from concord.orchestration.tasks.jobs import known_name, refuse_unknown_tables
from concord.orchestration.tasks.replication_now import replicated
from concord.orchestration.tasks.replication_run import replication_job, steps
from concord.orchestration.tasks.replication_spark import spark_of
from concord.repository.comparisons import record_comparison
from spark_jobs.compare import work_replication

logger = logger_named("concord.compare")

#: Seconds that the run which is on has to come to a level, and between two looks at it.
PATIENCE, PAUSE = 600.0, 0.2


class CompareReplicationParameters(parameters.Parameters):
    """A person's choice for one comparison of a replication's two sites."""

    tables: list[str] | None = Field(default=None, min_length=1)


def compare(
    engine: Engine,
    configuration: Configuration,
    name: str,
    asked: CompareReplicationParameters,
    owner: str,
    tell: Tell,
) -> CompareReport:
    """Let what waits be replayed, compare, record. It takes no lease of its own: runs go on beside it.

    Raises a ConcordError.
    """
    known_name(name, configuration.replications, "replication")
    started_at = pendulum.now("UTC")
    catch_up = _CatchUp(engine, configuration, name, owner)
    with spark_of(name) as spark:
        report = work_replication(_job(configuration, name, asked), spark, catch_up, steps(), tell)
    record_comparison(engine, report, started_at=started_at, ended_at=pendulum.now("UTC"))
    return report


def _job(
    configuration: Configuration, name: str, asked: CompareReplicationParameters
) -> CompareReplicationJob:
    ways = configuration.replications[name].ways
    forward, *reverse = (replication_job(configuration, name, way, epoch=0) for way in ways)
    refuse_unknown_tables(asked.tables, forward.replication.tables)
    chosen = None if asked.tables is None else tuple(asked.tables)
    return CompareReplicationJob(forward=forward, reverse=next(iter(reverse), None), chosen=chosen)


@dataclass(frozen=True)
class _CatchUp:
    """A run of all directions, unless one is on: then that one is waited for."""

    engine: Engine
    configuration: Configuration
    name: str
    owner: str

    def __call__(self, reached: Callable[[], bool]) -> None:
        """Raises a ConcordError; EntryRefused where a transaction cannot be replayed."""
        until = monotonic() + PATIENCE
        while not reached():
            try:
                self._run()
            except LeaseHeld as held:
                if monotonic() > until:
                    raise WriteContended(
                        f"{self.name}: the subscriber does not come to where the comparison began; {held.message}"
                    ) from held
                sleep(PAUSE)

    def _run(self) -> None:
        ways = self.configuration.replications[self.name].ways
        run = (self.engine, self.configuration, self.name, self.owner, silent, ways)
        for _, outcome in replicated(*run):
            if isinstance(outcome, ConcordError):
                raise outcome
