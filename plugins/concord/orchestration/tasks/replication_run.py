"""How a replication runs under its lease, and how the repository hears of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import sleep, time
from typing import cast
from uuid import uuid4

import pendulum
from pydantic import BaseModel, ConfigDict
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.contract.ends import Progress
from concord.jobs.largest import ONE_TRANSACTION
from concord.jobs.link import Direction, TransmissionReport
from concord.jobs.replication import EntryOperation, ReplicationJob, SetAside, replication_name
from concord.jobs.replication_report import ReplicationReport
from concord.jobs.site import Credentials, SiteAccess
from concord.messages.errors import ConcordError, LeaseHeld, LeaseLost
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell
from concord.orchestration.leases import keeping
from concord.orchestration.surroundings.connections import credentials
from concord.orchestration.tasks.jobs import known_name, refuse_other_dialect, site_accesses
from concord.orchestration.tasks.parameters import Parameters
from concord.orchestration.tasks.queued_conflicts import collect
from concord.orchestration.tasks.replication_spark import spark_for
from concord.repository import holds
from concord.repository.models import RunState
from concord.repository.runs import begin_run, fail_run
from concord.repository.status import last_runs
from concord.repository.transmissions import record_transmission
from concord.rules.brake import Hold
from concord.transactional.opening import never
from spark_jobs.interruption import interrupt_all
from spark_jobs.replicate import keep, look, work

#: Seconds between a continuous run that failed and the next one.
AFTER_FAILURE = 60.0

logger = logger_named("concord.replication")


class ReplicateParameters(Parameters):
    """A run of a replication leaves a person no choice: all that is committed is replayed."""


class ReplicationPlan(BaseModel):
    """The decision of `begin`: small, and without logins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    replication: str
    run_id: str  #: the repository's id of the run
    owner: str


def rest_after_failure(engine: Engine, name: str) -> None:
    """A continuous replication that cannot go on is not tried again without a pause."""
    for run in last_runs(engine, replication_name(name), limit=1):
        if run.state == RunState.FAILED and run.ended_at is not None:
            ago = time() - run.ended_at.timestamp()
            sleep(max(0.0, AFTER_FAILURE - ago))


def begin(
    engine: Engine,
    configuration: Configuration,
    name: str,
    has_ended: Callable[[str], bool] | None = None,
    **run: str,
) -> ReplicationPlan:
    """Take the lease and record the run. `run` is owner, dag_run_id and run_type. Raises LeaseHeld."""
    known_name(name, configuration.replications, "replication")
    lease = keeping.take(engine, replication_name(name), run["owner"], has_ended)
    run_id = begin_run(engine, lease, dag_run_id=run["dag_run_id"], run_type=run["run_type"])
    return ReplicationPlan(replication=name, run_id=run_id, owner=run["owner"])


def replicate(
    engine: Engine,
    configuration: Configuration,
    plan: ReplicationPlan,
    tell: Tell,
    direction: Direction = Direction.FORWARD,
    set_aside: SetAside | None = None,
    asked_to_end: Callable[[], bool] | None = None,
) -> ReplicationReport:
    """One try under a new epoch; operations by their effect, as the repository records them.

    It stays as the configuration says where it can be `asked_to_end`, else to the log's end. Raises a ConcordError.
    """
    started_at = pendulum.now("UTC")
    lease = keeping.take_for_run(engine, replication_name(plan.replication), plan.owner, plan.run_id)
    settings = configuration.replications[plan.replication]
    made = partial(replication_job, configuration, plan.replication, epoch=lease.epoch)
    job, back = made(direction), made(direction.related) if settings.both_ways else None
    stays = settings.stays if asked_to_end else {}
    job = job.model_copy(update={"set_aside": set_aside, "approved": approved(engine, job), **stays})
    try:
        with keeping.kept(engine, lease, interrupt_all), spark_for(job.replication) as spark:
            report = work(job, steps(), tell, asked_to_end or never, spark, back)
    except ConcordError as error:
        failed(engine, plan, job, error, started_at)
        raise
    done(engine, plan, job, report, started_at)
    return report


def done(
    engine: Engine,
    plan: ReplicationPlan,
    job: ReplicationJob,
    report: ReplicationReport,
    started_at: pendulum.DateTime,
) -> None:
    """Record a direction that ended well."""
    measured = {"seconds": report.seconds, "bytes": report.bytes, "lag": report.lag}
    sent = TransmissionReport.of(job, tables=report.tables, **measured)
    if job.replication.queued:
        collect(engine, job)
    _record(engine, plan, sent, started_at)
    holds.end(engine, job.synchronization, job.direction, [ONE_TRANSACTION], pendulum.now("UTC"))


def failed(
    engine: Engine,
    plan: ReplicationPlan,
    job: ReplicationJob,
    error: ConcordError,
    started_at: pendulum.DateTime,
) -> None:
    """Record a direction that stopped, and what a person has to approve."""
    _hold(engine, plan, job, error)
    stopped = TransmissionReport.of(job, error_code=error.code, error_message=error.message)
    _record(engine, plan, stopped, started_at)


def approved(engine: Engine, job: ReplicationJob) -> tuple[str, ...]:
    """The transactions that a person lets pass."""
    found = holds.approvals(engine, job.synchronization, job.direction)
    return tuple(each.since for each in found)


def _hold(engine: Engine, plan: ReplicationPlan, job: ReplicationJob, error: ConcordError) -> None:
    """Take down what a person has to approve."""
    if held := error.facts.get("holds"):
        found = [Hold.model_validate(each) for each in cast("list[object]", held)]
        about = (job.synchronization, job.direction, found)
        holds.record(engine, *about, since=str(error.since), run_id=plan.run_id, now=pendulum.now("UTC"))


def fail(engine: Engine, plan: ReplicationPlan, error: ConcordError) -> None:
    """The run ends badly; one that has lost its lease is no longer ours to fail."""
    if not isinstance(error, LeaseLost):
        fail_run(engine, plan.run_id, error.message, pendulum.now("UTC"))


def entry(
    engine: Engine, configuration: Configuration, name: str, number: int, owner: str, direction: Direction
) -> Sequence[EntryOperation]:
    """The operations of an entry that waits for its replay; under the lease, since the log has one reader at a time.

    Raises a ConcordError; LeaseHeld while a run is under way.
    """
    known_name(name, configuration.replications, "replication")
    lease = keeping.take(engine, replication_name(name), owner)
    try:
        return look(replication_job(configuration, name, direction, epoch=lease.epoch), number)
    finally:
        keeping.give_back(engine, replication_name(name), owner)


def keep_up(engine: Engine, configuration: Configuration, name: str, owner: str) -> str:
    """Between runs: confirm a log in which nothing waits, and give one up beyond `max_delta` (S4-124, S4-156).

    Returns the outcome in words. A run that is on does the same.
    """
    try:
        lease = keeping.take(engine, replication_name(name), owner)
    except LeaseHeld:
        return "a run is on"
    try:
        ways = configuration.replications[name].ways
        why = dict.fromkeys(_why_kept(configuration, name, way, lease.epoch) for way in ways)
        return "\n".join(filter(None, why)) or "confirmed"
    finally:
        keeping.give_back(engine, replication_name(name), owner)


def _why_kept(configuration: Configuration, name: str, way: Direction, epoch: int) -> str:
    """One direction's log, confirmed or not: where one cannot go on, the other's publisher has its disk back."""
    try:
        confirmed = keep(replication_job(configuration, name, way, epoch=epoch))
        return "" if confirmed else "transactions wait"
    except ConcordError as error:
        return error.message


def replication_job(
    configuration: Configuration, name: str, direction: Direction = Direction.FORWARD, *, epoch: int
) -> ReplicationJob:
    """One run of one direction under a new id. Raises ConnectionRefused."""
    definition = configuration.replication(name)
    source, target = site_accesses(configuration, definition.ends(direction))
    return ReplicationJob(
        replication=definition,
        transmission=uuid4().hex,
        epoch=epoch,
        direction=direction,
        source=source,
        target=target,
        log_reader=None if definition.by_triggers else log_reader(configuration, source),
    )


def log_reader(configuration: Configuration, publisher: SiteAccess) -> Credentials:
    """The login that reads the site's log. Raises ConnectionRefused."""
    site = configuration.sites[publisher.name]
    assert site.log_reader is not None, "a rule of the configuration"
    login = credentials(site.log_reader, insecure=site.insecure)
    refuse_other_dialect(publisher.name, publisher.reader, login)
    return login


def steps() -> Progress:
    """Each step is told once: a run that stays takes it thousands of times."""
    known = set[str]()

    def tell(step: str) -> None:
        if step not in known:
            known.add(step)
            log_event(logger, "step", name=step)

    return tell


def _record(
    engine: Engine, plan: ReplicationPlan, report: TransmissionReport, started_at: pendulum.DateTime
) -> None:
    record_transmission(engine, plan.run_id, report, started_at=started_at, ended_at=pendulum.now("UTC"))
