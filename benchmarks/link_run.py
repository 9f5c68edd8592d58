"""Run a link as Airflow's operator does: a Spark application of its own by spark-submit, or over a Connect server."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from benchmarks.connected_run import run_connected
from benchmarks.measurement import Measurement
from benchmarks.peak_memory import PeakMemory
from benchmarks.seconds_per_step import seconds_of, seconds_per_step
from concord.jobs.link import LinkJob, TransmissionReport
from concord.machine.java import java_home
from concord.messages.errors import LinkFailed
from concord.orchestration.tasks import spark_settings
from concord.orchestration.tasks.job_files import JobFiles, job_files
from spark_jobs.application import module

Kind = TypeVar("Kind", bound=BaseModel)

#: Names the Connect server over which links run, if any.
CONNECT = "CONCORD_SPARK_CONNECT"

_STEP = re.compile(r"concord\.application: step name=(\".*\")$")


@dataclass(frozen=True)
class Where:
    """On which Spark an application runs, and with which of its properties."""

    master: str = "local[2]"
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)  #: beside this process's own


HERE = Where()


@dataclass(frozen=True)
class LinkRun:
    """The link's report, and its time."""

    report: TransmissionReport
    measurement: Measurement


def run_link(job: LinkJob, where: Where = HERE) -> LinkRun:
    """Submit the job and wait for its end. Raises the ConcordError that it reported."""
    return LinkRun(*run_application("link", job, TransmissionReport, where))


def run_application(
    application: str, job: BaseModel, kind: type[Kind], where: Where = HERE
) -> tuple[Kind, Measurement]:
    """Submit `spark_jobs/<application>.py`, wait for its end; its report. Raises the ConcordError that it reported.

    Over the Connect server where `started` has named one.
    """
    if where is HERE and (url := os.environ.get(CONNECT)):
        return run_connected(application, job, kind, url)
    with job_files(job, kind) as files:
        command, environment = submission(files, application, where)
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None, "it was asked for"
        with process, PeakMemory(process.pid) as memory:
            lines = list(_timed(process.stdout))
            process.wait()
        wall = time.monotonic() - began
        report = _report(files, [line for _, line in lines])
    return report, Measurement(wall, seconds_of(report, _seconds_per_step(lines)), memory.bytes)


def submission(
    files: JobFiles[Any], application: str, where: Where = HERE
) -> tuple[list[str], dict[str, str]]:
    """Command and environment: what the operator's hook builds from the same settings."""
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    configuration = spark_settings.configuration(where.master, where.settings)
    settings = [word for name, value in configuration.items() for word in ("--conf", f"{name}={value}")]
    memory = ["--driver-memory", spark_settings.MEMORY, "--executor-memory", spark_settings.MEMORY]
    library = spark_settings.library(where.master, files)
    command = [
        spark_settings.spark_submit(),
        "--master",
        where.master,
        *settings,
        *memory,
        *([] if library is None else ["--py-files", library]),
        "--name",
        "concord benchmark",
        *map(str, (module(application), files.job, files.report)),
    ]
    return command, {**spark_settings.environment(), **where.environment, "SPARK_LOCAL_IP": "127.0.0.1"}


def _timed(lines: Iterable[str]) -> Iterator[tuple[float, str]]:
    for line in lines:
        yield time.monotonic(), line.rstrip()


def _report(files: JobFiles[Kind], output: list[str]) -> Kind:
    try:
        return files.read_report()
    except LinkFailed:
        sys.stderr.write("\n".join(output[-20:]) + "\n")
        raise


def _seconds_per_step(lines: list[tuple[float, str]]) -> dict[str, float]:
    steps = [(at, json.loads(found[1])) for at, line in lines if (found := _STEP.search(line))]
    assert steps, "the application's log names its steps"
    return seconds_per_step(steps)
