"""How far Spark is, by its tasks: nothing else is known of rows before their task has ended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import StatusTracker
from pyspark.sql import SparkSession

from concord.pace import Meter
from spark_jobs import sharing


def by_tasks(spark: SparkSession, meter: Meter) -> Callable[[], None]:
    """Looks how many tasks of our jobs have ended, and lets the meter stand at as large a part of its rows."""

    def look() -> None:
        # A Spark that ends while it is asked is no error of the work's.
        with suppress(Py4JError, OSError):
            done, tasks = _counted(spark)
            if tasks:
                meter.done = max(meter.done, meter.of * done // tasks)

    return look


def _counted(spark: SparkSession) -> tuple[int, int]:
    """Ended tasks, and all, of the jobs that run now."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [found for job in _running(tracker) if (found := tracker.getJobInfo(job))]
    named = [stage for job in jobs for stage in job.stageIds]
    stages = [each for stage in named if (each := tracker.getStageInfo(stage))]
    return sum(each.numCompletedTasks for each in stages), sum(each.numTasks for each in stages)


def _running(tracker: StatusTracker) -> list[int]:
    """Our jobs that run now. Spark remembers a thousand that have ended: each of those would cost a round trip."""
    running, ours = tracker.getActiveJobsIds(), sharing.group()
    return running if ours is None else [job for job in tracker.getJobIdsForGroup(ours) if job in running]
