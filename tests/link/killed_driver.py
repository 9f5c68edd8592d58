"""The driver of a transmission that stops or kills itself at a step: `JOB STEP OCCURRENCE SIGNAL`, then runs on."""

import os
import signal
import sys
from pathlib import Path

from concord.errors import ConcordError
from concord.link import LinkJob
from spark_jobs.application import read_job
from spark_jobs.link import transmit
from spark_jobs.session import start
from tests.link.pair import At


def main(job: str, step: str, occurrence: str, which: str) -> None:
    """Ends with the error code as its message when the transmission fails."""
    stop = At(step, lambda: os.kill(os.getpid(), signal.Signals[which]), int(occurrence))
    try:
        transmit(read_job(Path(job), LinkJob), lambda: start("to be killed"), stop)
    except ConcordError as error:
        sys.exit(error.code)


if __name__ == "__main__":
    main(*sys.argv[1:])
