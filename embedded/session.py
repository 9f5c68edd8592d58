"""Processes in sessions of their own: none is left once it is stopped, or once its starter has ended by SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

#: Seconds between the request to end and SIGKILL.
STOP_SECONDS = 20.0
_POLL_SECONDS = 0.1


def guard(session: int) -> subprocess.Popen[bytes]:
    """Start a watchdog that stops the session when this process ends, by SIGKILL too.

    It waits on a pipe of which only this process holds the other end.
    """
    return subprocess.Popen(
        [sys.executable, "-P", __file__, str(session)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def release(watchdog: subprocess.Popen[bytes]) -> None:
    """End a watchdog without any effect on what it watches."""
    watchdog.kill()
    watchdog.wait()
    if watchdog.stdin:
        watchdog.stdin.close()


def stop(number: int, reap: Callable[[], object] = lambda: None) -> None:
    """Stop every process of the session, and their children in other sessions: ask, then kill. None is left."""
    known = _members(number)
    deadline = time.monotonic() + STOP_SECONDS
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


if __name__ == "__main__":
    sys.stdin.read()
    stop(int(sys.argv[1]))
