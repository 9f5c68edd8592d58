"""What every application submitted to Spark does around its work: read the job once, report, end with a status."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from concord.databases.dialect import Progress
from concord.errors import ConcordError
from concord.event_log import log_event
from concord.pace import Pace, Tell

logger = logging.getLogger("concord.application")
#: How far the work is, as a line of JSON, for the task that submitted the application (`orchestration.pace_heard`).
pace_logger = logging.getLogger("concord.pace")

Job = TypeVar("Job", bound=BaseModel)


def read_job(path: Path, kind: type[Job]) -> Job:
    """The job file: ours alone (mode 0600), read once and removed at once, since it holds passwords (S5)."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConcordError(f"the job file is readable by others (mode {mode:o}); it must be 0600")
    job = kind.model_validate_json(path.read_text())
    path.unlink()
    return job


def _tell(pace: Pace) -> None:
    pace_logger.info(pace.model_dump_json())


def run(kind: type[Job], work: Callable[[Job, Progress, Tell], BaseModel]) -> int:
    """CONCORD_JOB in, CONCORD_REPORT out; 0, or 1 for a transient error, or 2 for a permanent one.

    Lines have no time of their own: Airflow writes one before each line that it logs.
    """
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # what ends a pipeline is raised as well
    job = read_job(Path(os.environ["CONCORD_JOB"]), kind)
    report_path = Path(os.environ["CONCORD_REPORT"])
    try:
        report = work(job, lambda step: log_event(logger, "step", name=step), _tell)
    except ConcordError as error:
        log_event(logger, "failed", code=error.code, message=error.message)
        reported = {"error_code": error.code, "error_message": error.message, "error_facts": error.facts}
        report_path.write_text(json.dumps(reported, default=str))
        return 1 if error.transient else 2
    report_path.write_text(report.model_dump_json())
    return 0
