"""A person's decision on a conflict of both sites' users: whose rows stand (S2-21, S2-24)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.databases.contract.replication_ends import Choice, Decision, Keys
from concord.jobs.replication import ReplicationJob
from concord.messages.pace import silent
from concord.transactional.replicate import Replication, opened
from concord.transactional.upkeep import of_entry
from concord.transmission.steps import Steps, unheard


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry by its number in the log of the first job's publisher, the site whose rows stand, and who says so."""

    number: int
    winner: str
    by: str


def decide(
    job: ReplicationJob,
    back: ReplicationJob,
    databases: Callable[[str], Dialect],
    wanted: Wanted,
    progress: Progress = unheard,
) -> int:
    """Write the winner's rows of the entry's keys at the other site; both replays pass over what was written before.

    Returns how many rows gave way; each stands in the conflict log of its site. The publisher of the entry commits
    first: killed before the subscriber does, the entry still stops the replay there, and the decision is repeated.
    Raises a ConcordError.
    """
    steps = Steps(progress, silent)
    with opened(job, databases, steps) as there, opened(back, databases, steps) as here:
        here.subscriber.level()
        keys: Keys = of_entry(there, wanted.number, there.subscriber.keys)
        with there.subscriber.deciding(keys) as subscriber:
            with here.subscriber.deciding(keys) as publisher:
                lost = _decided(there, here, subscriber, publisher, wanted)
            with steps.step("decide"):
                pass
    return lost


def _decided(
    there: Replication, here: Replication, subscriber: Decision, publisher: Decision, wanted: Wanted
) -> int:
    """Both sites' tables are locked: no user's transaction lies between the rows and the numbers."""
    subscriber.pass_over(publisher.own_level)
    publisher.pass_over(subscriber.own_level)
    if wanted.winner == there.job.source.name:
        return subscriber.give_way(publisher.rows(), _choice(there.job, wanted))
    return publisher.give_way(subscriber.rows(), _choice(here.job, wanted))


def _choice(job: ReplicationJob, wanted: Wanted) -> Choice:
    """The loser is where this job replays."""
    return Choice(
        job.synchronization,
        job.link,
        job.transmission,
        job.source.name,
        job.target.name,
        f"{wanted.by} decided on entry {wanted.number}",
    )
