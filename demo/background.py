"""Programs that run beside the demo: output to a file, and none is left when the demo ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from demo.environment import PROJECT
from embedded import private_file

_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1


class ProgramFailed(Exception):
    """A program that the demo needs ended with an error."""


@contextmanager
def running(
    arguments: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A Python module at work in a session of its own; the whole session is gone when the block ends."""
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
    try:
        yield process
    finally:
        end_session(process.pid, process.poll)
        process.wait()


def run(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    """Run a Python module to its end. Raises ProgramFailed, which says where its output is."""
    with running(arguments, environment, log) as process:
        wait(process, arguments, log)


def wait(process: subprocess.Popen[bytes], arguments: Sequence[str], log: Path) -> None:
    """Wait for a program that `running` started. Raises ProgramFailed."""
    if status := process.wait():
        raise ProgramFailed(f"`{' '.join(arguments)}` ended with status {status}. Its output: {log}")


def end_session(number: int, reap: Callable[[], object] = lambda: None) -> None:
    """Stop every process of the session, and their children in other sessions: ask, then kill. None is left."""
    known = _members(number)
    deadline = time.monotonic() + _STOP_SECONDS
    _send(known, signal.SIGTERM)
    while alive := {process for process in known | _members(number) if _is_alive(process)}:
        known |= alive
        reap()
        if time.monotonic() > deadline:
            _send(alive, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _send(processes: set[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _members(session: int) -> set[psutil.Process]:
    members = {process for process in psutil.process_iter() if _belongs_to(process, session)}
    for process in list(members):
        with suppress(psutil.NoSuchProcess):
            members |= set(process.children(recursive=True))
    return members


def _belongs_to(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session
    except (ProcessLookupError, PermissionError):
        return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
