"""The publisher's end of a replication, by the way in which its transactions are captured (S0-03)."""

from __future__ import annotations

from concord.databases.contract.replication_ends import PublisherEnd
from concord.databases.postgresql.replication.publisher import Publisher
from concord.databases.postgresql.replication.trigger_publisher import TriggerPublisher
from concord.jobs.replication import ReplicationJob


def publisher(job: ReplicationJob) -> PublisherEnd:
    """Raises SiteUnavailable or ConnectionRefused."""
    return TriggerPublisher(job) if job.replication.by_triggers else Publisher(job)
