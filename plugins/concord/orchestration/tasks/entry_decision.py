"""A person's decision on an entry at which both directions of a replication stop (S2-21)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from sqlalchemy import Engine

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationJob, replication_name
from concord.messages.errors import ParametersRefused
from concord.orchestration.leases import keeping
from concord.orchestration.tasks.jobs import known_name
from concord.orchestration.tasks.replication_run import replication_job
from concord.repository.conflicts import ConflictRow, collect_conflicts
from concord.transactional.decide import Wanted
from spark_jobs.replicate import settle

#: A decision that was killed has logged its losers, and nobody has collected them.
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def decide(
    engine: Engine, configuration: Configuration, name: str, direction: Direction, wanted: Wanted, owner: str
) -> int:
    """Under the lease, since no run may go on meanwhile; returns how many rows gave way.

    Raises a ConcordError; LeaseHeld while a run is under way.
    """
    known_name(name, configuration.replications, "replication")
    _refuse(configuration, name, wanted.winner)
    lease = keeping.take(engine, replication_name(name), owner)
    try:
        ways = [direction, Direction.REVERSE if direction is Direction.FORWARD else Direction.FORWARD]
        job, back = (replication_job(configuration, name, way, epoch=lease.epoch) for way in ways)
        lost = settle(job, back, wanted)
        _collect(engine, job if job.source.name == wanted.winner else back)
    finally:
        keeping.give_back(engine, replication_name(name), owner)
    return lost


def _refuse(configuration: Configuration, name: str, winner: str) -> None:
    replication = configuration.replications[name]
    if not replication.both_ways:
        raise ParametersRefused(
            f"{name} goes one way: only its publisher's rows can stand; see `entry retry`"
        )
    if replication.queued:
        raise ParametersRefused(f"{name} decides conflicts by its policy; see `conflicts list`")
    if winner not in replication.sites:
        known = " and ".join(replication.sites)
        raise ParametersRefused(f"--winner: {winner} is no site of {name}; its sites are {known}")


def _collect(engine: Engine, job: ReplicationJob) -> None:
    """From the site that gave way, where this job replays."""
    ledger = dialect(job.target.dialect).ledger
    for batch in ledger.conflicts(job.target, job.link, job.transmission, _EVER):
        collect_conflicts(engine, cast("list[ConflictRow]", batch))
