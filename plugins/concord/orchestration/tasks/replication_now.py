"""A run of a replication now, for whoever cannot wait for its DAG: a person at a terminal, or a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import pendulum
from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.jobs.link import Direction
from concord.jobs.replication import SetAside, replication_name
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError, LeaseHeld, LeaseLost
from concord.messages.pace import Tell
from concord.messages.several_errors import as_one
from concord.orchestration.leases import keeping
from concord.orchestration.tasks import replication_run
from concord.orchestration.tasks.replication_run import ReplicationPlan
from concord.repository.runs import complete_run


def replicated(
    engine: Engine,
    configuration: Configuration,
    name: str,
    owner: str,
    tell: Tell,
    ways: Sequence[Direction],
    aside: SetAside | None = None,
) -> list[tuple[Direction, ReplicationReport | ConcordError]]:
    """One run of each of these directions, under one lease; the outcome of each: one that stops holds up no other.

    Raises LeaseHeld, or LeaseLost where another run takes over.
    """
    plan = replication_run.begin(
        engine, configuration, name, owner=owner, dag_run_id=owner, run_type="command"
    )
    try:
        outcomes = [(way, _outcome(engine, configuration, plan, tell, way, aside)) for way in ways]
        if stopped := as_one([each for _, each in outcomes if isinstance(each, ConcordError)]):
            replication_run.fail(engine, plan, stopped)
        else:
            complete_run(engine, plan.run_id, pendulum.now("UTC"))
    except ConcordError as error:
        replication_run.fail(engine, plan, error)
        raise
    finally:
        keeping.give_back(engine, replication_name(name), owner)
    return outcomes


def _outcome(
    engine: Engine,
    configuration: Configuration,
    plan: ReplicationPlan,
    tell: Tell,
    way: Direction,
    aside: SetAside | None,
) -> ReplicationReport | ConcordError:
    try:
        return replication_run.replicate(engine, configuration, plan, tell, way, aside)
    except (LeaseHeld, LeaseLost):
        raise
    except ConcordError as error:
        return error
