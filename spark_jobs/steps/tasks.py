"""How far Spark is, by its tasks: nothing else is known of rows before their task has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import SparkSession, is_remote

from concord.messages.pace import Meter
from concord.transmission.steps import nothing_to_ask

if TYPE_CHECKING:
    from pyspark.sql.connect.shell.progress import ProgressHandler


def by_tasks(spark: SparkSession, meter: Meter) -> Callable[[], None]:
    """Lets the meter stand at as large a part of its rows as tasks have ended, whenever it is called.

    Connect tells of its own accord, and has no tracker; classic Spark is asked, and tells nobody.
    """
    if is_remote():
        spark.clearProgressHandlers()
        spark.registerProgressHandler(cast("ProgressHandler", _hearer(meter)))
        return nothing_to_ask

    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - Connect's client has none

    def look() -> None:
        # A Spark that ends while it is asked is no error of the work's.
        with suppress(Py4JError, OSError):
            _advance(meter, *_counted(spark))

    return look


def _hearer(meter: Meter) -> Callable[..., None]:
    def hear(*, stages: Iterable[Any] | None, **_: object) -> None:
        found = list(stages or ())
        _advance(
            meter, sum(each.num_completed_tasks for each in found), sum(each.num_tasks for each in found)
        )

    return hear


def _advance(meter: Meter, done: int, tasks: int) -> None:
    if tasks:
        meter.done = max(meter.done, meter.of * done // tasks)


def _counted(spark: SparkSession) -> tuple[int, int]:
    """Ended tasks, and all, of the jobs that run now."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [found for job in tracker.getActiveJobsIds() if (found := tracker.getJobInfo(job))]
    named = [stage for job in jobs for stage in job.stageIds]
    stages = [each for stage in named if (each := tracker.getStageInfo(stage))]
    return sum(each.numCompletedTasks for each in stages), sum(each.numTasks for each in stages)
