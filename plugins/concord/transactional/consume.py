"""A consumer reads the entries of a publisher beside its subscribers, and keeps its level itself (S0-41).

The publisher keeps its log for each consumer as it does for a subscriber. Nothing is confirmed before the consumer
says so, which it does after its own durable write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from concord.databases.contract.consumed import ConsumedTable, Operation
from concord.databases.contract.dialect import Dialect
from concord.databases.contract.logged_structures import LogAltered, LoggedStructures
from concord.databases.contract.replication_ends import PublisherEnd
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import HistoryLost, ParametersRefused
from concord.transactional.opening import along_the_log

Databases = Callable[[str], Dialect]


@dataclass(frozen=True, slots=True)
class Consumed:
    """All entries after one level up to another, in the order of their commits."""

    after: int
    level: int
    operations: Sequence[Operation]
    tables: Sequence[ConsumedTable]


def begin(job: ReplicationJob, databases: Databases, *, anew: bool) -> int:
    """The log is kept for the consumer from here on; returns its level. Raises a ConcordError.

    ParametersRefused where it was kept already, and is not to begin `anew`: entries would be missing.
    """
    with _publisher(job, databases) as publisher:
        published = publisher.inspect_published()
        if not anew and publisher.confirmed() is not None:
            raise ParametersRefused(
                f"{_name(job)} has begun already; to begin anew leaves out what it has not read"
            )
        publisher.drop_log()
        with publisher.begin_anew() as begun:
            publisher.begin_consumed(published)
            return begun.level


def read(job: ReplicationJob, databases: Databases, after: int | None, most: int) -> Consumed:
    """All that was committed after a level, until now; it ends soon after `most` operations, and cuts no entry.

    `after` None: after the level that was confirmed last. Raises a ConcordError; HistoryLost where the log no longer
    begins there.
    """
    with _publisher(job, databases) as publisher:
        published = publisher.inspect_published()
        since = _confirmed(job, publisher) if after is None else after
        _refuse_lost(job, publisher, since)
        _refuse_gaps(job, publisher.gaps(published))
        end = publisher.end_of_log().number
        return along_the_log(lambda logged: _consumed(publisher, logged, since, end, most))


def _consumed(publisher: PublisherEnd, logged: LoggedStructures, since: int, end: int, most: int) -> Consumed:
    """One that ends where the log goes on with other columns has all before."""
    published, level, operations = publisher.inspect_published(logged), since, list[Operation]()
    with closing(publisher.entries(since, published, end)) as entries:
        try:
            for each in entries:
                operations += each.operations
                level = each.level
                if len(operations) >= most:
                    break
            else:
                level = max(level, end)
        except LogAltered:
            if level == since:
                raise
    return Consumed(since, level, operations, publisher.consumed_tables(published))


def confirm(job: ReplicationJob, databases: Databases, level: int) -> None:
    """The consumer has everything up to the level on its disk: it need not be kept. Raises a ConcordError."""
    with _publisher(job, databases) as publisher:
        published = publisher.inspect_published()
        if level > publisher.end_of_log().number:
            raise ParametersRefused(
                f"{job.source.name} has no entry {level} yet, and {_name(job)} cannot have it"
            )
        if level > _confirmed(job, publisher):
            with publisher.stream(level, published) as stream:
                stream.confirm(level)


def end(job: ReplicationJob, databases: Databases) -> None:
    """No log is kept for the consumer any more. Raises a ConcordError."""
    with _publisher(job, databases) as publisher:
        publisher.drop_log()


def kept(job: ReplicationJob, databases: Databases) -> int | None:
    """Bytes of log that it has not confirmed; None where none is kept for it. Raises a ConcordError."""
    with _publisher(job, databases) as publisher:
        return publisher.unconfirmed()


def spare_the_disk(job: ReplicationJob, databases: Databases) -> str:
    """Beyond `max_delta` its log is given up: the disk is the users' (S4-124). In words. Raises a ConcordError."""
    with _publisher(job, databases) as publisher:
        behind = publisher.unconfirmed()
        if behind is None:
            return "it has not begun"
        if reason := job.replication.max_delta.exceeded(behind, None):
            publisher.drop_log()
            return f"given up: {reason}"
        return "kept"


@contextmanager
def _publisher(job: ReplicationJob, databases: Databases) -> Iterator[PublisherEnd]:
    with closing(databases(job.source.dialect).replications.publisher(job)) as publisher:
        yield publisher


def _confirmed(job: ReplicationJob, publisher: PublisherEnd) -> int:
    level = publisher.confirmed()
    if level is None:
        raise HistoryLost(f"{job.source.name} keeps no log for {_name(job)}; {_AGAIN}")
    return level


_AGAIN = "let it begin anew, and take what was missed from the tables themselves"


def _refuse_lost(job: ReplicationJob, publisher: PublisherEnd, level: int) -> None:
    """In words about a consumer: nobody initializes one. Which entry it had last, it alone knows."""
    _confirmed(job, publisher)
    try:
        publisher.refuse_lost(level, lambda: None)
    except HistoryLost as lost:
        raise HistoryLost(
            f"{job.source.name}: the log of {_name(job)} does not go on at the level {level}; {_AGAIN}"
        ) from lost


def _refuse_gaps(job: ReplicationJob, tables: Sequence[str]) -> None:
    if tables:
        raise HistoryLost(
            f"{job.source.name}: {', '.join(tables)}: made anew, or changed by users while nothing captured it, since"
            f" {_name(job)} began; {_AGAIN}"
        )


def _name(job: ReplicationJob) -> str:
    return f"the consumer {job.replication.name}"
