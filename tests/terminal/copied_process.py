"""`python -m concord` in a copy of a process that has imported Airflow.

It is a process of its own, which signals end as they end any other, and it saves the seconds of the import.
"""

import fcntl
import multiprocessing
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import NamedTuple

from concord.__main__ import main
from tests.terminal.killed_at_step import kill_at

#: Imported once, before the first copy is made.
PRELOADED = "tests.terminal.preloaded"

_COPIES = multiprocessing.get_context("forkserver")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Ended(NamedTuple):
    """A command that has ended, as `subprocess.CompletedProcess` has it."""

    returncode: int
    stdout: str
    stderr: str


class Copied:
    """A command that runs, and what it has written so far."""

    def __init__(self, folder: Path, words: tuple[str, ...], step: str | None) -> None:
        self._files = (folder / "out", folder / "err")
        self._process = _started(dict(os.environ), self._files, words, step)

    @property
    def status(self) -> int | None:
        """Negative when a signal ended it, None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def wait(self, seconds: float = 120) -> tuple[str, str]:
        """Its output when it has ended: stdout, stderr."""
        self._process.join(seconds)
        assert self.status is not None, self.said()
        return self.said()

    def said(self) -> tuple[str, str]:
        out, err = (file.read_text() if file.exists() else "" for file in self._files)
        return out, err


@contextmanager
def copied(folder: Path, *words: str, killed_at: str | None = None) -> Iterator[Copied]:
    """The command, typed; it kills itself at a step where one is named."""
    running = Copied(folder, words, killed_at)
    try:
        yield running
    finally:
        running.kill()


def concord(*words: str) -> Ended:
    """The command, typed, when it has ended."""
    with tempfile.TemporaryDirectory() as folder, copied(Path(folder), *words) as running:
        out, err = running.wait(200)
        assert running.status is not None
        return Ended(running.status, out, err)


def at_a_terminal(width: int, *words: str) -> tuple[int, str]:
    """The exit status, and what a terminal of that width shows, without its styles. The terminal folds no line."""
    screen, device = pty.openpty()
    fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    terminal = Path(os.ttyname(device))
    process = _started(environment | {"TERM": "xterm"}, (terminal, terminal), words, None)
    shown = b""
    try:
        while screen in wait([screen, process.sentinel]):
            shown += os.read(screen, 65536)
    finally:
        process.kill()  # it has ended, or the test's time is over
        process.join()
        os.close(device)
        os.close(screen)
    assert process.exitcode is not None
    return process.exitcode, _STYLE.sub("", shown.decode()).replace("\r\n", "\n")


def _started(
    environment: Mapping[str, str], outputs: tuple[Path, Path], words: tuple[str, ...], step: str | None
) -> multiprocessing.process.BaseProcess:
    _COPIES.set_forkserver_preload([PRELOADED])
    paths = (str(outputs[0]), str(outputs[1]))
    process = _COPIES.Process(target=_work, args=(environment, paths, words, step))
    process.start()
    return process


def _work(
    environment: Mapping[str, str], paths: tuple[str, str], words: tuple[str, ...], step: str | None
) -> None:
    """In the copy. The server that makes it ignores an import that fails, and each test would merely be slow."""
    assert PRELOADED in sys.modules, f"{PRELOADED} cannot be imported"
    os.environ.clear()
    os.environ.update(environment)
    os.setsid()  # the first terminal that it opens, if any, is its own
    for number, path in enumerate(paths, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    if step is not None:
        kill_at(step)
    status = main(list(words))
    sys.stdout.flush()
    sys.exit(status)
