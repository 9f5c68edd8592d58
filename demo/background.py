"""Programs that run beside the demo: output to a file, and none is left when the demo ends."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from demo.environment import PROJECT
from embedded import private_file, session


class ProgramFailed(Exception):
    """A program that the demo needs ended with an error."""


@contextmanager
def running(
    arguments: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python module at work in a session of its own. None of the session is left when the block ends, or this process
    by SIGKILL."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab", opener=private_file.opener) as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=PROJECT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=private_file.UMASK,
        )
    watchdog = session.guard(process.pid)
    try:
        yield process
    finally:
        session.stop(process.pid, process.poll)
        process.wait()
        session.release(watchdog)


def run(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a Python module to its end. Raises ProgramFailed, which says where its output is."""
    with running(arguments, environment, log) as process:
        wait(process, arguments, log)


def wait(process: subprocess.Popen[bytes], arguments: Sequence[str], log: Path) -> None:
    """Wait for a program that `running` started. Raises ProgramFailed."""
    if status := process.wait():
        raise ProgramFailed(f"`{' '.join(arguments)}` ended with status {status}. Its output: {log}")
