"""One comparison of one pair as an application: `concord.comparison`, with Spark and every database known."""

from __future__ import annotations

import sys

from concord.comparison import compare as comparison
from concord.comparison.replication import CatchUp, compare_replication
from concord.databases.contract.ends import Progress
from concord.databases.registry import dialect
from concord.jobs.comparison import CompareJob, CompareReplicationJob, CompareReport
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell, silent
from concord.transmission.steps import unheard
from spark_jobs.application import Spark, run
from spark_jobs.by_spark import BySpark

logger = logger_named("concord.compare")


def compare(
    job: CompareJob, spark: Spark, progress: Progress = unheard, tell: Tell = silent
) -> CompareReport:
    """Compare, and repair where that was asked. `spark` is called where many rows must be joined, or mapped.

    Raises a ConcordError.
    """
    return comparison.compare(job, dialect, BySpark(spark), progress, tell)


def work(job: CompareJob, spark: Spark, progress: Progress, tell: Tell) -> CompareReport:
    """The application's work: one comparison, logged by counts."""
    report = compare(job, spark, progress, tell)
    log_event(logger, "comparison completed", differences=report.found, seconds=dict(report.seconds))
    return report


def work_replication(
    job: CompareReplicationJob, spark: Spark, catch_up: CatchUp, progress: Progress, tell: Tell
) -> CompareReport:
    """One comparison of a replication's two sites, in the process of whoever calls. Raises a ConcordError."""
    report = compare_replication(job, dialect, BySpark(spark), catch_up, progress, tell)
    log_event(logger, "comparison completed", differences=report.found, seconds=dict(report.seconds))
    return report


def main() -> int:
    """As submitted; its status."""
    return run(CompareJob, work)


if __name__ == "__main__":
    sys.exit(main())
