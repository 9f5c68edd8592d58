"""The driver of a comparison that kills itself at a step: `JOB STEP OCCURRENCE`."""

import os
import signal
import sys
from pathlib import Path

from concord.comparison import CompareJob
from spark_jobs.application import read_job
from spark_jobs.compare import compare
from spark_jobs.session import start
from tests.link.pair import At

if __name__ == "__main__":
    path, step, occurrence = sys.argv[1:]
    stop = At(step, lambda: os.kill(os.getpid(), signal.SIGKILL), int(occurrence))
    compare(read_job(Path(path), CompareJob), lambda: start("to be killed"), stop)
