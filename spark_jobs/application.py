"""An application: work on a job, with Spark when it is needed, and a report.

An Airflow task calls the work itself (`work_of`). Submitted to Spark, an application reads the job from a file once,
writes the report into another, and ends with a status.
"""

from __future__ import annotations

import json
import logging
import stat
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import BaseModel

from concord.databases.contract.ends import Progress
from concord.messages.errors import ConcordError
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Pace, Tell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logger_named("concord.application")
#: How far the work is, as a line of JSON, for the task that submitted the application (`orchestration.pace_heard`).
pace_logger = logger_named("concord.pace")

Job = TypeVar("Job", bound=BaseModel)
#: Asked for Spark when it is first needed. Raises SparkUnavailable or ConnectionRefused.
Spark = Callable[[], "SparkSession"]
#: Raises a ConcordError.
Work = Callable[[Job, Spark, Progress, Tell], BaseModel]


def work_of(application: str) -> Work[BaseModel]:
    """The work of `spark_jobs.<application>`."""
    return cast("Work[BaseModel]", import_module(f"spark_jobs.{application}").work)


def module(application: str) -> Path:
    """The file that is submitted."""
    return Path(__file__).with_name(f"{application}.py")


def read_job(path: Path, kind: type[Job]) -> Job:
    """The job file: ours alone (mode 0600), read once and removed at once, since it holds passwords."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConcordError(f"the job file is readable by others (mode {mode:o}); it must be 0600")
    job = kind.model_validate_json(path.read_text())
    path.unlink()
    return job


def _tell(pace: Pace) -> None:
    pace_logger.info(json.dumps(pace.model_dump()))


def _start() -> SparkSession:
    from spark_jobs.session import start  # noqa: PLC0415 - pyspark takes a while, and most work needs no Spark

    return start()


def _step(step: str) -> None:
    log_event(logger, "step", name=step)


def run(kind: type[Job], work: Work[Job], arguments: Sequence[str] | None = None) -> int:
    """The job's file and the report's as arguments; 0, or 1 for a transient error, or 2 for a permanent one.

    Lines have no time of their own: Airflow writes one before each line that it logs.
    """
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # what ends a pipeline is raised as well
    job_path, report_path = map(Path, sys.argv[1:] if arguments is None else arguments)
    job = read_job(job_path, kind)
    try:
        report = work(job, _start, _step, _tell)
    except ConcordError as error:
        log_event(logger, "failed", code=error.code, message=error.message)
        reported = {"error_code": error.code, "error_message": error.message, "error_facts": error.facts}
        report_path.write_text(json.dumps(reported, default=str))
        return 1 if error.transient else 2
    report_path.write_text(report.model_dump_json())
    return 0
