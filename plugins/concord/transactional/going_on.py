"""A direction goes on by itself past an entry that users have settled by hand (S2-21)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from concord.databases.contract.dialect import Dialect
from concord.jobs.replication import ReplicationJob
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError, EntryConflict
from concord.transactional.decide import settled_by_hand


def going_on(
    job: ReplicationJob,
    back: ReplicationJob,
    databases: Callable[[str], Dialect],
    replicated: Callable[[], ReplicationReport],
) -> ReplicationReport:
    """The report of the run of the job that nothing stops. `back`: the other direction's job, which is at rest.

    Raises a ConcordError.
    """
    settled = None
    while True:
        try:
            return replicated()
        except EntryConflict as conflict:
            number = int(str(conflict.number))
            if number == settled or not settled_by_hand(job, back, databases, number):
                raise
            settled = number


def both_going_on(
    jobs: Sequence[ReplicationJob],
    databases: Callable[[str], Dialect],
    replicated: Callable[[], list[ReplicationReport | ConcordError]],
) -> list[ReplicationReport | ConcordError]:
    """The same of a run of both directions at once, which ends where one of them stops; the outcome of each."""
    settled = set[tuple[str, int]]()
    while True:
        outcomes = replicated()
        before = len(settled)
        for job, back, outcome in zip(jobs, reversed(jobs), outcomes, strict=True):
            if isinstance(outcome, EntryConflict):
                entry = (job.direction, int(str(outcome.number)))
                if entry not in settled and settled_by_hand(job, back, databases, entry[1]):
                    settled.add(entry)
        if len(settled) == before:
            return outcomes
