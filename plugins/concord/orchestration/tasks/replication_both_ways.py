"""How both directions of a replication run at once, under one lease (S2-30)."""

from __future__ import annotations

from collections.abc import Callable

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication import replication_name
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError
from concord.messages.pace import Tell
from concord.messages.several_errors import as_one
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.replication_run import (
    ReplicationPlan,
    approved,
    done,
    failed,
    replication_job,
    steps,
)
from spark_jobs.interruption import interrupt_all
from spark_jobs.replicate import stay_both_ways


def replicate_both_ways(
    engine: Engine,
    configuration: Configuration,
    plan: ReplicationPlan,
    tell: Tell,
    asked_to_end: Callable[[], bool],
) -> list[ReplicationReport]:
    """One try of both directions at once, under one new epoch. Where one stops, the other reads its log to the end.

    Raises a ConcordError with the sentences of all that stopped; each direction's outcome is recorded.
    """
    started_at = pendulum.now("UTC")
    lease = keeping.take_for_run(engine, replication_name(plan.replication), plan.owner, plan.run_id)
    stays = configuration.replications[plan.replication].stays
    ways = [replication_job(configuration, plan.replication, way, epoch=lease.epoch) for way in Direction]
    jobs = [each.model_copy(update={"approved": approved(engine, each), **stays}) for each in ways]
    outcomes: list[ReplicationReport | ConcordError]
    try:
        with keeping.kept(engine, lease, interrupt_all):
            outcomes = stay_both_ways(jobs, steps(), tell, asked_to_end)
    except ConcordError as error:
        outcomes = [error for _ in jobs]
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, ConcordError):
            failed(engine, plan, job, outcome, started_at)
        else:
            done(engine, plan, job, outcome, started_at)
    if stopped := as_one([each for each in outcomes if isinstance(each, ConcordError)]):
        raise stopped
    return [each for each in outcomes if isinstance(each, ReplicationReport)]
