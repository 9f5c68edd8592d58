"""Run a link as an Airflow task does over a Connect server: the driver is this process, with everything imported."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

from pydantic import BaseModel

from benchmarks.measurement import Measurement
from benchmarks.seconds_per_step import seconds_of, seconds_per_step
from concord.messages.pace import silent
from embedded.connect_server import connect_server
from spark_jobs.application import work_of
from spark_jobs.connect import connected

Kind = TypeVar("Kind", bound=BaseModel)


@contextmanager
def server(directory: Path) -> Iterator[str]:
    """A Connect server whose log is in `directory`; its URL. It has run one Python task."""
    with connect_server(directory / "spark.log", os.environ, memory="2g") as made:
        yield made.url


def run_connected(application: str, job: BaseModel, kind: type[Kind], url: str) -> tuple[Kind, Measurement]:
    """The report of `spark_jobs.<application>`, and what it took. Raises the ConcordError that stopped it."""
    steps: list[tuple[float, str]] = []
    began = time.monotonic()
    with connected(url) as spark:
        report = work_of(application)(job, spark, lambda step: steps.append((time.monotonic(), step)), silent)
    wall = time.monotonic() - began
    return cast("Kind", report), Measurement(wall, seconds_of(report, seconds_per_step(steps)))
