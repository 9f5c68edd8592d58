"""One run of one replication. Rows travel as they are in the log; where values are mapped, Spark maps many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from concord.databases.contract.ends import Progress
from concord.databases.registry import dialect
from concord.jobs.replication import EntryOperation, ReplicationJob
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell
from concord.rules.hook_function import AboutToBeWritten, Hooked, Word
from concord.tables.manipulation import Texts
from concord.tables.row_mapping import Mapped, RowMapping, in_the_driver
from concord.transactional.both_ways import initialize_both_ways, replicate_both_ways
from concord.transactional.decide import Wanted, decide
from concord.transactional.going_on import both_going_on, going_on
from concord.transactional.opening import never
from concord.transactional.replicate import replicate
from concord.transactional.upkeep import keep_up, shown
from spark_jobs.application import Spark

logger = logger_named("concord.replication")


def look(job: ReplicationJob, number: int) -> Sequence[EntryOperation]:
    """The operations of an entry that is not replayed yet. Raises a ConcordError."""
    return shown(job, dialect, number)


def keep(job: ReplicationJob) -> bool:
    """Is its log confirmed, since nothing waits in it? Raises a ConcordError."""
    return keep_up(job, dialect)


def settle(job: ReplicationJob, back: ReplicationJob, wanted: Wanted) -> int:
    """Rows that gave way to the winner's of an entry. Raises a ConcordError."""
    return decide(job, back, dialect, wanted)


def work(
    job: ReplicationJob,
    progress: Progress,
    tell: Tell,
    asked_to_end: Callable[[], bool] = never,
    spark: Spark | None = None,
    back: ReplicationJob | None = None,
) -> ReplicationReport:
    """One run, logged: in the process of whoever calls. Spark begins with the first rows that need it.

    With the job of the way `back`, which is at rest, it goes on past conflicts that users have settled by hand. Raises
    a ConcordError.
    """
    spark_from = job.replication.spark_from
    mapper = in_the_driver if spark is None or spark_from is None else partial(mapped, spark, spark_from)
    run = partial(replicate, job, dialect, progress, tell, asked_to_end, mapper, ask_hook)
    return _logged(job, run() if back is None else going_on(job, back, dialect, run))


def mapped(spark: Spark, spark_from: int, mapping: RowMapping, rows: Sequence[Texts]) -> Sequence[Mapped]:
    """Few rows need no Spark. Raises SparkUnavailable."""
    if not rows or len(rows) < spark_from:
        return in_the_driver(mapping, rows)
    from spark_jobs.steps.mapped_texts import mapped_texts  # noqa: PLC0415 - most runs need no Spark

    return mapped_texts(spark(), mapping, rows)


def ask_hook(hooked: Hooked, rows: Sequence[AboutToBeWritten]) -> Sequence[Word]:
    """The words of a hook on operations, asked in this process. Raises HookFailed."""
    from spark_jobs.steps import hook  # noqa: PLC0415 - most runs have none

    return hook.ask_hook(hooked, rows)


def work_both_ways(
    forward: ReplicationJob, reverse: ReplicationJob, progress: Progress, tell: Tell
) -> ReplicationReport:
    """The beginning of both directions, logged. Raises a ConcordError."""
    return _logged(forward, initialize_both_ways(forward, reverse, dialect, progress, tell))


def stay_both_ways(
    jobs: Sequence[ReplicationJob], progress: Progress, tell: Tell, asked_to_end: Callable[[], bool]
) -> list[ReplicationReport | ConcordError]:
    """A run of both directions at once, logged; the outcome of each. It goes on past conflicts that users have settled
    by hand."""
    run = partial(replicate_both_ways, jobs, dialect, progress, tell, asked_to_end, ask_hook)
    outcomes = both_going_on(jobs, dialect, run)
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, ReplicationReport):
            _logged(job, outcome)
    return outcomes


def _logged(job: ReplicationJob, report: ReplicationReport) -> ReplicationReport:
    log_event(
        logger,
        "initialized" if report.initialized else "replicated",
        replication=job.replication.name,
        direction=job.direction,
        entries=report.entries,
        operations=report.operations,
        conversions=report.conversions,
        seconds=report.seconds,
    )
    if report.reinitialize is not None:
        log_event(logger, "initialize again", replication=job.replication.name, reason=report.reinitialize)
    return report
