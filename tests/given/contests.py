"""Rows that users of both sites have changed: where a direction stops, a person's decision, and the end of it."""

import re

import pytest

from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import EntryConflict
from concord.transactional.decide import Wanted, decide
from concord.transactional.going_on import going_on
from tests.given.at_step import At
from tests.given.replicated_sites import Replicated

OTHER = {Direction.FORWARD: Direction.REVERSE, Direction.REVERSE: Direction.FORWARD}


def stopped_at(sites: Replicated, direction: Direction) -> int:
    """The number of the entry at which this direction stops."""
    with pytest.raises(EntryConflict) as refused:
        sites.run(direction=direction)
    return int(re.findall(r"entry (\d+),", refused.value.message)[0])


def gone_on(sites: Replicated, direction: Direction) -> ReplicationReport:
    """A run as a command or a task makes it: it goes on past rows that users have settled by hand."""
    job = sites.job(direction)
    back = sites.job(OTHER[direction], epoch=job.epoch)
    return going_on(job, back, dialect, lambda: sites.run(direction=direction, epoch=job.epoch))


def decided(
    sites: Replicated,
    number: int,
    winner: str,
    direction: Direction,
    at: At | None = None,
    operations: tuple[int, ...] = (),
) -> int:
    """How many rows gave way."""
    jobs = (sites.job(direction), sites.job(OTHER[direction]))
    epoch = max(job.epoch for job in jobs)
    same = [job.model_copy(update={"epoch": epoch}) for job in jobs]
    wanted = Wanted(number, winner, "a person", operations)
    return decide(*same, dialect, wanted, at or (lambda step: None))


def settled(sites: Replicated) -> None:
    """Both directions go on, nothing is left to do, and no row differs."""
    sites.run_both()
    assert [each.entries for each in sites.run_both()] == [0, 0]
    assert sites.are_equal()
