"""An initialization that kills itself at a step: `JOB STEP OCCURRENCE`."""

import os
import signal
import sys
from pathlib import Path

from concord.initialization import InitializationJob
from spark_jobs.application import read_job
from spark_jobs.initialize import initialize
from spark_jobs.session import start
from tests.link.pair import At


def main(job: str, step: str, occurrence: str) -> None:
    """Ends by the signal; with status 0 when the step was never reached."""
    die = At(step, lambda: os.kill(os.getpid(), signal.SIGKILL), int(occurrence))
    initialize(read_job(Path(job), InitializationJob), lambda: start("to be killed"), die)


if __name__ == "__main__":
    main(*sys.argv[1:])
