"""A look at a replication without a run: the entries that wait, and a log that need not be kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.logged_structures import LoggedStructures
from concord.jobs.replication import EntryOperation, ReplicationJob
from concord.messages.errors import NotInitialized, SubscriberInvalid
from concord.messages.pace import silent
from concord.transactional import validity
from concord.transactional.opening import Replication, along_the_log, opened
from concord.transactional.replicate import unknown
from concord.transmission.steps import Steps, unheard

T = TypeVar("T")


def keep_up(job: ReplicationJob, databases: Callable[[str], Dialect]) -> bool:
    """Confirm the log where nothing waits in it, and give it up beyond `max_delta`, without replaying anything.

    True when it was confirmed. Raises a ConcordError: SubscriberInvalid, HistoryLost, NotInitialized.
    """

    def look(logged: LoggedStructures) -> bool:
        with opened(job, databases, Steps(unheard, silent), logged=logged) as replication:
            return _kept_up(job, replication)

    return along_the_log(look)


def _kept_up(job: ReplicationJob, replication: Replication) -> bool:
    ends = (job, replication.publisher, replication.subscriber, replication.published)
    level = _level(replication)
    replication.publisher.refuse_lost(level, replication.subscriber.last_entry)
    confirmed = validity.keep_up(*ends, level, replication.publisher.end_of_log())
    if confirmed:
        replication.publisher.forget_delivered()
    return confirmed


def _level(replication: Replication) -> int:
    """A subscriber that has to begin anew needs none of the log: nothing is kept for it meanwhile."""
    try:
        return replication.subscriber.level()
    except (NotInitialized, SubscriberInvalid):
        replication.publisher.drop_log()
        raise


def shown(job: ReplicationJob, databases: Callable[[str], Dialect], number: int) -> Sequence[EntryOperation]:
    """The operations of an entry that is not replayed yet; nothing is replayed, and the log stays (S2-22).

    Raises a ConcordError; ParametersRefused where no such entry is left.
    """

    def look(logged: LoggedStructures) -> Sequence[EntryOperation]:
        with opened(job, databases, Steps(unheard, silent), logged=logged) as replication:
            return of_entry(replication, number, replication.subscriber.waiting)

    return along_the_log(look)


def of_entry(replication: Replication, number: int, ask: Callable[[int], T | None]) -> T:
    """The answer about an entry that waits, once it is staged. Raises ParametersRefused where there is none."""
    subscriber, level = replication.subscriber, replication.subscriber.level()
    replication.publisher.refuse_lost(level, subscriber.last_entry)
    subscriber.begin()
    with replication.publisher.stream(level, replication.published) as stream:
        for batch in stream.batches(replication.publisher.end_of_log().number):
            subscriber.stage(batch)
            found = ask(number)
            if found is not None:
                return found
            if batch.level is not None:
                subscriber.let_go()
    raise unknown(replication.job, number)
