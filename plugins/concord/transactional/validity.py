"""Is a subscriber still near enough to its publisher? Where it is not, the log is given up (S4-124)."""

from __future__ import annotations

from typing import Any

from concord.databases.contract.replication_ends import LogEnd, PublisherEnd, SubscriberEnd
from concord.jobs.max_delta import MaxDelta
from concord.jobs.replication import ReplicationJob


def refuse_beyond(
    job: ReplicationJob, publisher: PublisherEnd, subscriber: SubscriberEnd, published: Any, level: int
) -> int:
    """The level from which the log is read. A subscriber that is near enough by its level costs no look into the log.

    Raises SubscriberInvalid.
    """
    if job.replication.max_delta == MaxDelta():
        return level
    end, since = publisher.end_of_log(), subscriber.current_at()
    if not job.replication.max_delta.exceeded(end.number - level, None if since is None else end.at - since):
        return level
    return end.number if keep_up(job, publisher, subscriber, published, level, end) else level


def keep_up(
    job: ReplicationJob,
    publisher: PublisherEnd,
    subscriber: SubscriberEnd,
    published: Any,
    level: int,
    end: LogEnd,
) -> bool:
    """Confirm the log up to its end where nothing waits in it: an idle publisher keeps no log of others.

    True when that was so. Else the oldest transaction decides. Raises SubscriberInvalid.
    """
    with publisher.stream(level, published) as stream:
        waiting = (each.committed_at for each in stream.batches(end.number))
        oldest = next((moment for moment in waiting if moment is not None), None)
        if oldest is None:
            subscriber.move_level(end.number, end.at)
            stream.confirm(end.number)
            return True
    if reason := job.replication.max_delta.exceeded(end.number - level, end.at - oldest):
        give_up(job, publisher, subscriber, reason)
    return False


def spare_the_disk(job: ReplicationJob, publisher: PublisherEnd) -> None:
    """The subscriber does not answer: the log that it has not confirmed decides."""
    behind = publisher.unconfirmed()
    if behind is not None and job.replication.max_delta.exceeded(behind, None):
        publisher.drop_log()


def give_up(job: ReplicationJob, publisher: PublisherEnd, subscriber: SubscriberEnd, reason: str) -> None:
    """The users' disk comes first: killed in between, the next run finds no slot, and refuses as well.

    Raises SubscriberInvalid.
    """
    publisher.drop_log()
    subscriber.invalidate(reason)
    subscriber.level()
