"""Run one comparison in a process of its own: from its start, imports and all, to its end."""

import pickle
import subprocess
import sys
import time

from benchmarks.measurement import Measurement
from benchmarks.peak_memory import PeakMemory
from concord.jobs.comparison import CompareJob, CompareReport
from concord.messages.errors import ConcordError


def run_alone(job: CompareJob) -> tuple[CompareReport, Measurement]:
    """Raises the ConcordError that it ended with; one that asks for Spark is an error."""
    command = [sys.executable, "-m", "benchmarks.alone_inside"]
    began = time.monotonic()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with PeakMemory(process.pid) as memory:
            said, _ = process.communicate(pickle.dumps(job))
        wall = time.monotonic() - began
    told: CompareReport | ConcordError = pickle.loads(said)  # noqa: S301 - our own process wrote it
    if isinstance(told, ConcordError):
        raise told
    return told, Measurement(wall, told.seconds, memory.bytes)
