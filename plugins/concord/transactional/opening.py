"""Both ends of a replication, opened and looked at, with the columns that the log has of their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.logged_structures import NOTHING_LOGGED, LogAltered, LoggedStructures
from concord.databases.contract.replication_ends import PublisherEnd, SubscriberEnd
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConcordError, StructureChanged
from concord.transactional import validity
from concord.transactional.overlap import Overlap
from concord.transactional.pacer import Pacer
from concord.transmission.steps import Steps

T = TypeVar("T")


def never() -> bool:
    """Nobody asks a run to end before its time."""
    return False


@dataclass(frozen=True)
class Replication:
    """Both ends of a run, open and looked at."""

    job: ReplicationJob
    publisher: PublisherEnd
    subscriber: SubscriberEnd
    published: Any
    steps: Steps
    asked_to_end: Callable[[], bool]
    leaves: Callable[[], bool]
    overlap: Overlap
    pacer: Pacer | None = None


def along_the_log(work: Callable[[LoggedStructures], T]) -> T:
    """Do the work with the columns that the log has of each table, again wherever it goes on with others.

    The work raises LogAltered there, once all before is done.
    """
    logged = NOTHING_LOGGED
    while True:
        try:
            return work(logged)
        except LogAltered as altered:
            if logged.get(altered.table) == altered.structure:
                raise
            logged = {**logged, altered.table: altered.structure}


@contextmanager
def opened(
    job: ReplicationJob,
    databases: Callable[[str], Dialect],
    steps: Steps,
    asked_to_end: Callable[[], bool] = never,
    leaves: Callable[[], bool] = never,
    logged: LoggedStructures = NOTHING_LOGGED,
) -> Iterator[Replication]:
    """Both ends, looked at, and no older run's any more. Raises a ConcordError."""
    with steps.step("open"):
        publisher = databases(job.source.dialect).replications.publisher(job)
    with closing(publisher):
        with steps.step("open"):
            subscriber = _subscriber(job, databases, publisher)
        with closing(subscriber):
            with steps.step("inspect"):
                published = _inspected(job, publisher, subscriber, logged)
                subscriber.take_epoch()
            throttle = job.replication.throttle
            pacer = Pacer(throttle, asked_to_end) if throttle else None
            with Overlap(subscriber, steps) as overlap:
                ends = (publisher, subscriber, published)
                yield Replication(job, *ends, steps, asked_to_end, leaves, overlap, pacer)


def _subscriber(
    job: ReplicationJob, databases: Callable[[str], Dialect], publisher: PublisherEnd
) -> SubscriberEnd:
    """One that does not answer may cost the publisher no more of its disk than `max_delta`."""
    try:
        return databases(job.target.dialect).replications.subscriber(job)
    except ConcordError:
        if not job.initialize:
            validity.spare_the_disk(job, publisher)
        raise


def _inspected(
    job: ReplicationJob, publisher: PublisherEnd, subscriber: SubscriberEnd, logged: LoggedStructures
) -> Any:
    """The published tables. The subscriber may have a table as it was before the publisher's was altered: then the
    operations of that time can still be replayed. Raises StructureChanged."""
    published = publisher.inspect_published(logged)
    try:
        subscriber.inspect_subscribed(published)
    except StructureChanged:
        reads_no_log = job.initialize and not job.copied
        waiting = {} if reads_no_log else {**publisher.logged_structures(published), **logged}
        if waiting == logged:
            raise
        published = publisher.inspect_published(waiting)
        subscriber.inspect_subscribed(published)
    return published
