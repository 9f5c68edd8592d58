"""The processes of one embedded PostgreSQL server: started, found, stopped and killed."""

import signal
import subprocess
import time
from pathlib import Path

import psutil

from embedded import private_file
from embedded.account import Account

#: PostgreSQL's shutdown modes and the signals that ask for them.
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

_STATUS_LINE = 7  # of postmaster.pid, counted from 0
_OPEN = ("ready", "standby")
_POLL_SECONDS = 0.02


def launch(program: Path, data: Path, port: int, log: Path, account: Account) -> subprocess.Popen[bytes]:
    """Start a postmaster as a child of this process; it is not ready yet."""
    with open(log, "ab", opener=private_file.opener) as output:
        return account.start([program, "-D", data, "-p", str(port)], output=output)


def guard(data: Path, account: Account) -> subprocess.Popen[bytes]:
    """Start a watchdog that shuts the server down when this process ends, by SIGKILL too.

    It waits on a pipe of which only this process holds the other end. A parent-death signal would not do:
    that one comes when the *thread* that started the server ends.
    """
    script = 'read -r _; kill -INT "$(head -n 1 "$0")"'
    command: list[str | Path] = ["/bin/sh", "-c", script, data / "postmaster.pid"]
    return account.start(command, stdin=subprocess.PIPE, output=subprocess.DEVNULL)


def find(data: Path) -> psutil.Process | None:
    """The live postmaster of this data directory."""
    lines = _pid_file(data)
    if not lines:
        return None
    try:
        process = psutil.Process(int(lines[0]))
    except psutil.NoSuchProcess:
        return None
    return process if _works_in(process, data) else None


def is_ready(data: Path, pid: int) -> bool:
    """Whether the postmaster with this process id accepts connections, if only of readers as a standby does."""
    lines = _pid_file(data)
    return len(lines) > _STATUS_LINE and lines[0] == str(pid) and lines[_STATUS_LINE].strip() in _OPEN


def stop(process: psutil.Process, data: Path, mode: str, timeout: float) -> None:
    """Ask a postmaster to shut down and wait for it; TimeoutError when that takes over `timeout` seconds."""
    process.send_signal(SIGNALS[mode])
    deadline = time.monotonic() + timeout
    while _works_in(process, data):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the PostgreSQL server in {data} did not stop within {timeout:.0f} s")
        time.sleep(_POLL_SECONDS)


def kill(data: Path) -> None:
    """SIGKILL every process of this data directory, and return when none is left."""
    while processes := _processes(data):
        for process in processes:
            _kill(process)
        time.sleep(_POLL_SECONDS)


def clear_stale_lock(data: Path) -> None:
    """Remove the lock file of a dead postmaster, and the processes that outlived it.

    PostgreSQL takes any living process with the old number for its own (after a container's restart this is a
    frequent one), even a zombie. Call it only when `find` found nothing.
    """
    kill(data)
    (data / "postmaster.pid").unlink(missing_ok=True)


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _processes(data: Path) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if _works_in(process, data)]


def _works_in(process: psutil.Process, data: Path) -> bool:
    """Every PostgreSQL process has its data directory as working directory."""
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and process.name() == "postgres" and process.cwd() == str(data)
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
