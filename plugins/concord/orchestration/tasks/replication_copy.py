"""The copy of a replication: a person's choices for it, and how it runs under the lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pendulum
from pydantic import Field
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction, TransmissionReport
from concord.jobs.replication import ReplicationDefinition, ReplicationJob, replication_name
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import BrakeHeld, ConcordError, ParametersRefused
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.jobs import known_name
from concord.orchestration.tasks.parameters import Parameters
from concord.orchestration.tasks.replication_run import (
    ReplicationPlan,
    approved,
    fail,
    failed,
    replication_job,
    steps,
)
from concord.orchestration.tasks.replication_spark import spark_for
from concord.repository.lease import Lease
from concord.repository.runs import INITIALIZE, begin_run, complete_run
from concord.repository.transmissions import record_transmission
from spark_jobs.interruption import interrupt_all
from spark_jobs.replicate import work, work_both_ways

logger = logger_named("concord.replication")


class InitializeReplicationParameters(Parameters):
    """A person's choices for `initialize__<replication>`."""

    replace: bool = False
    tables: list[str] | None = Field(default=None, min_length=1)

    def changes(self, replication: ReplicationDefinition) -> dict[str, Any]:
        """Of its job. Raises ParametersRefused."""
        if self.tables and not replication.copies_tables:
            raise ParametersRefused(
                f"parameter tables: {replication.name} copies all of its tables together, as its procedures or its"
                " subscriber's users write several of them at once; initialize it without"
            )
        known = [table.name for table in replication.tables]
        for name in self.tables or ():
            known_name(name, known, f"table of {replication.name}")
        return {"initialize": True, "replace": self.replace, "copied": frozenset(self.tables or ())}


def initialize(
    engine: Engine,
    configuration: Configuration,
    name: str,
    asked: InitializeReplicationParameters,
    owner: str,
    tell: Tell,
    has_ended: Callable[[str], bool] | None = None,
) -> ReplicationReport:
    """Copy the tables, and begin the log there; under the lease, so that no run goes on meanwhile.

    Raises a ConcordError; LeaseHeld while a run is under way, SitesDiffer where the subscriber has rows. Raises
    BrakeHeld where a transaction of a table that is not copied is too large: it waits for `approve`. Raises
    ParametersRefused where the replication does not copy these tables alone.
    """
    known_name(name, configuration.replications, "replication")
    started_at = pendulum.now("UTC")
    lease = keeping.take(engine, replication_name(name), owner, has_ended)
    try:
        job = replication_job(configuration, name, epoch=lease.epoch)
        changes = {**asked.changes(job.replication), "approved": approved(engine, job)}
        job = job.model_copy(update=changes)
        with keeping.kept(engine, lease, interrupt_all):
            try:
                if job.replication.both_ways:
                    back = replication_job(configuration, name, Direction.REVERSE, epoch=lease.epoch)
                    report = work_both_ways(job, back, steps(), tell)
                else:
                    with spark_for(job.replication) as spark:
                        report = work(job, steps(), tell, spark=spark)
            except BrakeHeld as error:
                _record_held(engine, lease, job, error, started_at)
                raise
            _record_copy(engine, lease, job, report, started_at)
        return report
    finally:
        keeping.give_back(engine, replication_name(name), owner)


def _record_held(
    engine: Engine, lease: Lease, job: ReplicationJob, error: BrakeHeld, started_at: pendulum.DateTime
) -> None:
    """A transaction of a table that is not copied waits for a person: `approve` finds it as a run's."""
    run_id = begin_run(engine, lease, dag_run_id=lease.owner, run_type=INITIALIZE)
    plan = ReplicationPlan(replication=job.replication.name, run_id=run_id, owner=lease.owner)
    failed(engine, plan, job, error, started_at)
    fail(engine, plan, error)


def _record_copy(
    engine: Engine,
    lease: Lease,
    job: ReplicationJob,
    report: ReplicationReport,
    started_at: pendulum.DateTime,
) -> None:
    """Its cost is compared with that of runs (S0-05). The copy stands, recorded or not."""
    try:
        run_id = begin_run(engine, lease, dag_run_id=lease.owner, run_type=INITIALIZE)
        done = TransmissionReport.of(job, tables=report.tables, seconds=report.seconds, bytes=report.bytes)
        record_transmission(engine, run_id, done, started_at=started_at, ended_at=pendulum.now("UTC"))
        complete_run(engine, run_id, pendulum.now("UTC"))
    except ConcordError as error:
        log_event(logger, "copy not recorded", replication=job.replication.name, reason=error.message)
