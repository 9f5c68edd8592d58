"""The beginning where both sites write (S2-06): one copy, and two logs that begin where it stands."""

from __future__ import annotations

from collections.abc import Callable

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.jobs.replication import ReplicationJob, ReplicationReport
from concord.messages.pace import Tell, silent
from concord.transactional.replicate import opened, replicate
from concord.transmission.steps import Steps, unheard


def initialize_both_ways(
    forward: ReplicationJob,
    reverse: ReplicationJob,
    databases: Callable[[str], Dialect],
    progress: Progress = unheard,
    tell: Tell = silent,
) -> ReplicationReport:
    """The subscriber's log is kept from before the copy on, so that nothing its users do afterwards is missed.

    Killed before its end, the reverse direction refuses to run until it is done again. Raises a ConcordError.
    """
    with opened(reverse, databases, Steps(progress, tell)) as back:
        with back.steps.step("slot"), back.publisher.begin_anew():
            pass
        report = replicate(forward, databases, progress, tell)
        back.subscriber.begin_at(report.own_level)
    return report
