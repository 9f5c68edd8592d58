"""A driver of replications in a process of its own, which stays: its processor time and its memory are its own."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.peak_memory import PeakMemory
from concord.jobs.replication import ReplicationJob
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError
from demo.background import ProgramFailed


@dataclass(frozen=True)
class Run:
    """One run in the driver."""

    report: ReplicationReport
    processor: float  #: seconds of the driver's own
    memory: int  #: bytes, the most that was seen


@dataclass(frozen=True)
class Driver:
    """It has imported everything once its first run is over."""

    process: subprocess.Popen[bytes]

    def run(self, job: ReplicationJob) -> Run:
        """Raises the ConcordError that the run ended with, and ProgramFailed when the driver has ended."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        with PeakMemory(self.process.pid) as memory:
            stdin.write(pickle.dumps(job))
            stdin.flush()
            try:
                told, processor = pickle.load(stdout)  # noqa: S301 - our own process wrote it
            except EOFError:
                raise ProgramFailed("the driver of the replication has ended") from None
        if isinstance(told, ConcordError):
            raise told
        return Run(told, processor, memory.bytes)


@contextmanager
def driver() -> Iterator[Driver]:
    """It ends with the block."""
    command = [sys.executable, "-m", "benchmarks.replaying_inside"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Driver(process)
