"""The first copy of a replication, and the level at which its log goes on (S0-51)."""

from __future__ import annotations

from collections.abc import Callable

from concord.jobs.replication_report import ReplicationReport, replayed
from concord.messages.pace import Meter
from concord.transactional.opening import Replication


def nothing() -> None:
    """The copy is all there is to commit."""


def initialized(replication: Replication, about_to_commit: Callable[[], None] = nothing) -> ReplicationReport:
    """Killed before the copy is committed, it leaves the replication as it was: its rows, its level and its log."""
    publisher, subscriber, steps = replication.publisher, replication.subscriber, replication.steps
    with steps.step("slot"), publisher.begin_anew() as begun:
        copies = publisher.copies(replication.published, begun.snapshot)
        with steps.long_step("copy", Meter("copy", replication.job.replication.name)):
            filled = subscriber.initialize(
                copies, begun.level, replace=replication.job.replace, about_to_commit=about_to_commit
            )
    with steps.step("confirm"), publisher.stream(begun.level, replication.published) as stream:
        stream.confirm(begun.level)
    tables = tuple(replayed(*each) for each in filled.rows.items())
    return ReplicationReport(
        transmission=replication.job.transmission,
        tables=tables,
        level_to=begun.level,
        own_level=filled.own_level,
        initialized=True,
        seconds=steps.seconds,
    )
