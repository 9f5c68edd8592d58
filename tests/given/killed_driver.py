"""The driver of a transmission as a process of its own, which stops or kills itself at a step.

`started` is a program with a Java of its own, as the operator starts it. `Forked` is a copy of this process, which
uses this process's Spark and saves the start of Java. At every step of a link nothing is under way between Python
and Java. So for the databases its end is as sudden.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from concord.jobs.link import LinkJob
from concord.messages.errors import ConcordError
from spark_jobs.application import read_job
from spark_jobs.connect import Connected
from spark_jobs.link import transmit
from spark_jobs.session import start
from tests.conftest import PROJECT
from tests.given.at_step import At
from tests.given.two_sites import Pair

#: Names the Connect server of a driver that `started`.
CONNECT = "CONCORD_SPARK_CONNECT"
_BROKEN = 3  #: status of a driver that ended in an error of nobody's making


Work = Callable[[At], object]  #: a transmission, a comparison or an initialization that hears of its steps


class Forked:
    """A child of ours that works until the step, where it gets the signal. Spark is started here, for us and all."""

    def __init__(
        self, sites: Pair, work: Work, which: signal.Signals, step: str, occurrence: int = 1
    ) -> None:
        sites.spark()
        self._said, said = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os._exit(_work(work, At(step, lambda: os.kill(os.getpid(), which), occurrence), said))
        os.close(said)

    @property
    def is_stopped(self) -> bool:
        return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED

    def wait(self) -> tuple[int, str]:
        """Its status, negative when a signal ended it, and the code of the error that it ended with."""
        with os.fdopen(self._said) as said:
            words = said.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), words


def _work(work: Work, stop: At, said: int) -> int:
    """In the child: never returns into the test, whatever happens."""
    try:
        work(stop)
    except ConcordError as error:
        os.write(said, error.code.encode())
        return 1
    except BaseException as error:  # noqa: BLE001
        os.write(said, repr(error).encode())
        return _BROKEN
    return 0


def killed(sites: Pair, work: Work, step: str, occurrence: int = 1) -> None:
    """Work in a child that kills itself at the step; fails when it ends in another way."""
    assert Forked(sites, work, signal.SIGKILL, step, occurrence).wait() == (-signal.SIGKILL, "")


def started(
    job: LinkJob, step: str, folder: Path, url: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.given.killed_driver JOB STEP`, which kills itself there, to its end.

    Over the Connect server at `url`, if any.
    """
    file = folder / "job.json"
    file.touch(mode=0o600)
    file.write_text(job.model_dump_json())
    return subprocess.run(
        [sys.executable, "-m", "tests.given.killed_driver", file, step],
        cwd=PROJECT,
        env=os.environ
        | {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}
        | ({} if url is None else {CONNECT: url}),
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )


def main(job: str, step: str) -> None:
    stop = At(step, lambda: os.kill(os.getpid(), signal.SIGKILL))
    spark = Connected(os.environ[CONNECT]) if CONNECT in os.environ else start
    transmit(read_job(Path(job), LinkJob), spark, stop)


if __name__ == "__main__":
    main(*sys.argv[1:])


def wait_until_stopped(zombie: Forked) -> None:
    deadline = time.monotonic() + 120
    while not zombie.is_stopped:
        assert time.monotonic() < deadline
        time.sleep(0.05)
