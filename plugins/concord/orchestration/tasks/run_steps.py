"""How a run of a synchronization begins, completes, and gives its lease back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowRescheduleException
from airflow.sdk.types import DagRunProtocol
from sqlalchemy import Engine

from concord.configuration.configuration import config_path, load
from concord.jobs.link import TableReport
from concord.messages.errors import LeaseHeld, ParametersRefused, TablesStopped
from concord.messages.event_log import log_event, logger_named
from concord.orchestration.leases import keeping, owners
from concord.orchestration.leases.holder import LeaseHolder
from concord.orchestration.surroundings.airflow_errors import in_airflow_terms
from concord.orchestration.surroundings.repository_connection import repository
from concord.orchestration.tasks import metrics, objectives, parameters
from concord.orchestration.tasks.notification import notify_of_conflicts
from concord.orchestration.tasks.outcome_log import log_outcome
from concord.orchestration.tasks.run_plan import RunPlan, SynchronizeParameters, data_interval
from concord.repository import holds
from concord.repository.lease import Lease
from concord.repository.runs import Scope, begin_run, complete_run, fail_run, last_synchronized, release_run
from concord.repository.status import TransmissionStatus, transmissions
from concord.values.interval import Interval

logger = logger_named("concord.configuration")

#: How often a run that waits for the lease asks again: soon at first, as most runs take seconds, then less often.
SOON, PAUSE = timedelta(seconds=2), timedelta(seconds=15)
#: For how long: dozens of runs may be before it.
PATIENCE = timedelta(hours=24)


#: Puts the task off, by an exception: the lease is held, and is asked for again after the pause.
PutOff = Callable[[LeaseHeld, timedelta], None]


def begin(
    synchronization: str,
    context: Context,
    given: SynchronizeParameters | None = None,
    put_off: PutOff | None = None,
) -> dict[str, Any]:
    """Check what the run was asked to do, take the lease, record the run; the plan, as XCom carries it.

    The `given` orders hold for every run of somebody's own DAG, whose conf and data interval are not ours to read.

    Works without a logical date: what a link sends comes from its position; only a backfill looks at its data
    interval. Fails for good on parameters it does not take, and waits while another run holds the lease: where,
    `put_off` says; None is in Airflow's scheduler.
    """
    dag_run = context["dag_run"]
    with in_airflow_terms():
        asked, scope = _asked(dag_run, given)
        _check(synchronization, asked)
        engine, owner = repository(), owners.of_run(dag_run)
        lease = _lease(engine, synchronization, owner, context, put_off or to_scheduler)
        if asked.approve:
            _approve(engine, synchronization, dag_run)
        run_id = begin_run(
            engine, lease, dag_run_id=dag_run.run_id, run_type=dag_run.run_type.value, scope=scope
        )
        last = last_synchronized(engine, synchronization)
        metrics.of_synchronization(engine, synchronization)
    log_event(logger, "run begins", synchronization=synchronization, run=run_id, last_started_at=last)
    plan = RunPlan(
        synchronization=synchronization,
        run_id=run_id,
        owner=owner,
        epoch=lease.epoch,
        last_started_at=last,
        direction=scope.direction,
        tables=None if asked.tables is None else tuple(asked.tables),
        plan_only=asked.plan_only,
        interval=scope.interval,
    )
    return plan.model_dump(mode="json")


def _asked(
    dag_run: DagRunProtocol, given: SynchronizeParameters | None
) -> tuple[SynchronizeParameters, Scope]:
    """Raises ParametersRefused."""
    if given is not None:
        return given, given.scope(None)
    asked = parameters.read(SynchronizeParameters, dag_run.conf)
    return asked, asked.scope(_interval(dag_run, asked))


def _check(synchronization: str, asked: SynchronizeParameters) -> None:
    """Raises ParametersRefused; the configuration's notices go to the log."""
    configuration = load(config_path())
    for notice in configuration.notices:
        logger.info("%s", notice)
    asked.check_tables([table.name for table in configuration.tables(synchronization)])


def _approve(engine: Engine, synchronization: str, dag_run: DagRunProtocol) -> None:
    """Let what is held now pass in this run. Raises ParametersRefused where nothing is: that would approve unseen."""
    who = dag_run.triggering_user_name or dag_run.run_id
    approved = holds.approve(engine, synchronization, who, pendulum.now("UTC"))
    if not approved:
        raise ParametersRefused(
            f"parameter approve: nothing of {synchronization} is held; run it without, and see what the brakes say"
        )
    for each in approved:
        log_event(
            logger, "brake released", direction=each.direction, hold=str(each.hold), by=each.approved_by
        )


def complete(plan: dict[str, Any], context: Context) -> None:
    """Mark the run as done. Its start time becomes the synchronization's only when it covered everything:

    both directions, every table, and no mere plan (S1-20). Tells of many conflicts. Fails for good when a link left
    tables out: both links have carried the others by then. Raises TablesStopped in Airflow's terms.
    """
    with in_airflow_terms():
        engine, done = repository(), RunPlan.model_validate(plan)
        newest = {each.direction: each for each in transmissions(engine, done.run_id)}.values()
        stopped = _stopped(newest)
        if stopped:
            fail_run(engine, done.run_id, stopped, pendulum.now("UTC"))
        else:
            complete_run(engine, done.run_id, pendulum.now("UTC"))
            metrics.of_synchronization(engine, done.synchronization)
        # Only now: a repeated try of this task would tell twice.
        pair = load(config_path()).synchronizations.get(done.synchronization)
        if pair is not None and pair.notify is not None:
            notify_of_conflicts(engine, pair.notify, done.synchronization, done.run_id, context)
        _log_outcomes(newest)
        if stopped:
            raise TablesStopped(stopped)


def _stopped(newest: Iterable[TransmissionStatus]) -> str:
    """Which tables the newest transmission of each link left out, and why; empty when none."""
    return "; ".join(
        f"{each.direction} link: {each.error_message}"
        for each in newest
        if each.error_code == TablesStopped.code
    )


def _log_outcomes(newest: Iterable[TransmissionStatus]) -> None:
    """The log of the run's last step tells of both links; each link's own log tells conflicts by type as well."""
    for each in newest:
        tables = [TableReport.model_validate(table) for table in each.tables]
        log_outcome(f"{each.direction} link, {each.source} → {each.target}", tables)


def release(synchronization: str, context: Context) -> None:
    """Give the lease back, however the run went; a run that never said how it went is marked as released.

    Then its links are judged by their objectives.
    """
    group = context["ti"].task_id.removesuffix("release")
    plan = context["ti"].xcom_pull(task_ids=f"{group}begin")
    with in_airflow_terms():
        engine = repository()
        begun = None if plan is None else RunPlan.model_validate(plan)
        owner = owners.of_run(context["dag_run"]) if begun is None else begun.owner
        keeping.give_back(engine, synchronization, owner)
        if begun is not None:
            release_run(engine, begun.run_id, pendulum.now("UTC"))
        run_id = None if begun is None else begun.run_id
        objectives.after_run(engine, synchronization, run_id, context)


def _interval(dag_run: DagRunProtocol, asked: SynchronizeParameters) -> Interval | None:
    """Which versions the run carries again; None for a run that goes on from the positions."""
    if dag_run.run_type != "backfill":
        return asked.interval(pendulum.now("UTC"))
    if asked.since is not None or asked.until is not None:
        raise ParametersRefused(
            "parameter since: a backfill run has its own data interval; leave since and until out"
        )
    return data_interval(dag_run.data_interval_start, dag_run.data_interval_end)


def _lease(engine: Engine, synchronization: str, owner: str, context: Context, put_off: PutOff) -> Lease:
    """The lease, now. While another run holds it, ours is put off, and its worker is free for the other's tasks:

    `airflow backfill create` lets ten runs begin at once, whatever max_active_runs says.
    """
    holder, dag_run = LeaseHolder(context["ti"]), context["dag_run"]
    try:
        return keeping.take(engine, synchronization, owner, holder.has_ended)
    except LeaseHeld as held:
        waited = pendulum.now("UTC") - pendulum.instance(dag_run.start_date or pendulum.now("UTC"))
        if waited > PATIENCE:
            raise
        pause = min(PAUSE, max(SOON, waited / 2))
        log_event(
            logger,
            "waits for the lease",
            synchronization=synchronization,
            holder=held.owner,
            until=held.expires_at,
            asks_again_in=pause.total_seconds(),
            what_to_do=holder.remedy(str(held.owner)),
        )
        put_off(held, pause)
        raise


def to_scheduler(_held: LeaseHeld, pause: timedelta) -> None:
    """Let Airflow's scheduler start the task anew after the pause. Raises AirflowRescheduleException."""
    raise AirflowRescheduleException(pendulum.now("UTC") + pause) from None  # type: ignore[no-untyped-call]
