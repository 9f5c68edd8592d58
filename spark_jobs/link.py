"""One transmission of one link as an application: `concord.transmission`, with Spark and every database known."""

from __future__ import annotations

import sys

from concord.databases.contract.ends import Progress
from concord.databases.registry import dialect
from concord.jobs.link import LinkJob, TransmissionReport
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell, silent
from concord.transmission import transmit as transmission
from concord.transmission.steps import unheard
from spark_jobs.application import Spark, run
from spark_jobs.by_spark import BySpark

logger = logger_named("concord.link")


def transmit(
    job: LinkJob, spark: Spark, progress: Progress = unheard, tell: Tell = silent
) -> TransmissionReport:
    """Run the link once. `spark` is called only where a step is Spark's.

    Raises a ConcordError; then the target is as it was, and no position has moved.
    """
    return transmission.transmit(job, dialect, BySpark(spark), progress, tell)


def work(job: LinkJob, spark: Spark, progress: Progress, tell: Tell) -> TransmissionReport:
    """The application's work: one transmission, logged."""
    report = transmit(job, spark, progress, tell)
    log_event(
        logger, "transmission completed", link=job.link, rows=report.total("acquired"), seconds=report.seconds
    )
    return report


def main() -> int:
    """As submitted; its status."""
    return run(LinkJob, work)


if __name__ == "__main__":
    sys.exit(main())
