"""How a snapshot is refreshed under its lease, and how the repository hears of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pendulum
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.link import TransmissionReport
from concord.jobs.snapshot import SnapshotJob, SnapshotReport, snapshot_name
from concord.messages.errors import ConcordError, LeaseLost
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.jobs import known_name, site_accesses
from concord.orchestration.tasks.parameters import Parameters
from concord.repository.runs import Scope, begin_run, fail_run
from concord.repository.transmissions import record_transmission

#: Submits a job and waits for its report; and what ends the submission.
Submit = Callable[[SnapshotJob], SnapshotReport]


class SnapshotParameters(Parameters):
    """A person's choices for one refresh."""

    full: bool = False
    plan_only: bool = False


class SnapshotPlan(BaseModel):
    """The decision of `begin`: small, without row data and without logins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: str
    run_id: str  #: the repository's id of the run
    owner: str
    full: bool = False
    plan_only: bool = False


def begin(
    engine: Engine,
    configuration: Configuration,
    name: str,
    asked: SnapshotParameters,
    has_ended: Callable[[str], bool] | None = None,
    **run: str,
) -> SnapshotPlan:
    """Take the lease and record the run. `run` is owner, dag_run_id and run_type. Raises LeaseHeld."""
    known_name(name, configuration.snapshots, "snapshot")
    lease = keeping.take(engine, snapshot_name(name), run["owner"], has_ended)
    scope = Scope(plan_only=asked.plan_only)
    run_id = begin_run(engine, lease, dag_run_id=run["dag_run_id"], run_type=run["run_type"], scope=scope)
    return SnapshotPlan(
        snapshot=name, run_id=run_id, owner=run["owner"], full=asked.full, plan_only=asked.plan_only
    )


def refresh(
    engine: Engine,
    configuration: Configuration,
    plan: SnapshotPlan,
    submit: Submit,
    on_lost: Callable[[], None],
) -> dict[str, Any]:
    """One try under a new epoch; rows by what became of them, as the repository records them. Raises a
    ConcordError."""
    started_at = pendulum.now("UTC")
    lease = keeping.take_for_run(engine, snapshot_name(plan.snapshot), plan.owner, plan.run_id)
    job = snapshot_job(configuration, plan, lease.epoch)
    try:
        with keeping.kept(engine, lease, on_lost):
            report = submit(job)
    except ConcordError as error:
        failed = TransmissionReport.of(job, error_code=error.code, error_message=error.message)
        _record(engine, plan, failed, started_at)
        raise
    _record(engine, plan, _succeeded(job, report), started_at)
    return report.model_dump(mode="json")


def fail(engine: Engine, plan: SnapshotPlan, error: ConcordError) -> None:
    """The run ends badly; one that has lost its lease is no longer ours to fail."""
    if not isinstance(error, LeaseLost):
        fail_run(engine, plan.run_id, error.message, pendulum.now("UTC"))


def snapshot_job(configuration: Configuration, plan: SnapshotPlan, epoch: int) -> SnapshotJob:
    """One refresh under a new id. Raises ConnectionRefused."""
    definition = configuration.snapshot(plan.snapshot)
    source, target = site_accesses(configuration, (definition.source, definition.target))
    return SnapshotJob(
        snapshot=definition,
        transmission=uuid4().hex,
        epoch=epoch,
        source=source,
        target=target,
        full=plan.full,
        plan_only=plan.plan_only,
    )


def _succeeded(job: SnapshotJob, report: SnapshotReport) -> TransmissionReport:
    tables = (report.of_table(str(job.snapshot.table)),)
    return TransmissionReport.of(job, tables=tables, seconds=report.seconds, bytes=report.bytes)


def _record(
    engine: Engine, plan: SnapshotPlan, report: TransmissionReport, started_at: pendulum.DateTime
) -> None:
    record_transmission(engine, plan.run_id, report, started_at=started_at, ended_at=pendulum.now("UTC"))
