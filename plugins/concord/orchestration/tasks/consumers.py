"""Consumers of replications as the configuration has them: their jobs, and the log that is kept for each (S0-41)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from concord.configuration.configuration import Configuration
from concord.databases.registry import dialect
from concord.jobs.consumer import of_consumer
from concord.jobs.replication import ReplicationJob
from concord.messages.errors import ConcordError
from concord.orchestration.tasks import jobs
from concord.orchestration.tasks.replication_run import log_reader
from concord.transactional import consume


def consumers(configuration: Configuration) -> dict[str, str]:
    """Each with its replication."""
    return {
        consumer: name for name, each in configuration.replications.items() for consumer in each.consumers
    }


def consumer_job(configuration: Configuration, name: str) -> ReplicationJob:
    """Of its publisher alone: no other site is asked. Raises ParametersRefused or ConnectionRefused."""
    known = consumers(configuration)
    definition = configuration.replication(known[jobs.known_name(name, known, "consumer")])
    source = jobs.site_access(configuration, definition.publisher)
    return ReplicationJob(
        replication=of_consumer(definition, name),
        transmission=uuid4().hex,
        epoch=0,
        source=source,
        target=source,
        log_reader=None if definition.by_triggers else log_reader(configuration, source),
    )


@dataclass(frozen=True, slots=True)
class ConsumerStanding:
    """The log that a publisher keeps for one of them."""

    name: str
    replication: str
    publisher: str
    behind: int | None = None  #: bytes of it; None: none is kept
    problem: ConcordError | None = None  #: why that is not known


def standings(configuration: Configuration) -> Iterator[ConsumerStanding]:
    """A publisher that does not answer stops nothing."""
    for name, replication in consumers(configuration).items():
        known = (name, replication, configuration.replications[replication].publisher)
        try:
            yield ConsumerStanding(*known, consume.kept(consumer_job(configuration, name), dialect))
        except ConcordError as error:
            yield ConsumerStanding(*known, problem=error)


def keep_up(configuration: Configuration) -> dict[str, str]:
    """Give up, between reads, each log beyond `max_delta` (S4-124); by consumer, in words."""
    return {name: _kept_up(configuration, name) for name in consumers(configuration)}


def _kept_up(configuration: Configuration, name: str) -> str:
    try:
        return consume.spare_the_disk(consumer_job(configuration, name), dialect)
    except ConcordError as error:
        return error.message
