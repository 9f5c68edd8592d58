"""The first copy of a replication, and the level at which its log goes on (S0-51)."""

from __future__ import annotations

from collections.abc import Callable

from concord.jobs.replication_report import ReplicationReport, replayed
from concord.messages.pace import Meter
from concord.transactional.opening import Replication


def nothing() -> None:
    """The copy is all there is to commit."""


def never_asked(level: int) -> None:
    """All tables are copied: nothing is replayed."""


def initialized(
    replication: Replication,
    about_to_commit: Callable[[], None] = nothing,
    replay_up_to: Callable[[int], None] = never_asked,
) -> ReplicationReport:
    """Killed before the copy is committed, it leaves the replication as it was: its rows, its level and its log.

    Where some tables alone are copied, the log of all others is replayed up to the copy first. Killed meanwhile, it
    leaves a replication whose runs refuse these tables.
    """
    publisher, subscriber = replication.publisher, replication.subscriber
    steps, job = replication.steps, replication.job
    if job.copied:
        publisher.refuse_lost(subscriber.level(), subscriber.last_entry)
    with steps.step("slot"), publisher.begin_anew() as begun:
        if job.copied:
            replay_up_to(begun.level)
        copies = publisher.copies(replication.published, begun.snapshot)
        with steps.long_step("copy", Meter("copy", job.replication.name)):
            filled = subscriber.initialize(
                copies, begun.level, replace=job.replace, about_to_commit=about_to_commit
            )
    with steps.step("confirm"), publisher.stream(begun.level, replication.published) as stream:
        stream.confirm(begun.level)
    tables = tuple(replayed(*each) for each in filled.rows.items())
    return ReplicationReport(
        transmission=job.transmission,
        tables=tables,
        level_to=begun.level,
        own_level=filled.own_level,
        initialized=True,
        seconds=steps.seconds,
    )
