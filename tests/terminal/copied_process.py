"""`python -m concord` in a copy of a process that has imported Airflow.

It is a process of its own, which signals end as they end any other, and it saves the seconds of the import.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from concord.__main__ import main
from tests.terminal.killed_at_step import kill_at

_COPIES = multiprocessing.get_context("forkserver")


class Copied:
    """A command that runs, and what it has written so far."""

    def __init__(self, folder: Path, words: tuple[str, ...], step: str | None) -> None:
        _COPIES.set_forkserver_preload(["tests.terminal.preloaded"])
        self._files = tuple(folder / name for name in ("out", "err"))
        paths = tuple(map(str, self._files))
        self._process = _COPIES.Process(target=_work, args=(dict(os.environ), paths, words, step))
        self._process.start()

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


def _work(
    environment: Mapping[str, str], paths: tuple[str, str], words: tuple[str, ...], step: str | None
) -> None:
    """In the copy."""
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(paths, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    if step is not None:
        kill_at(step)
    status = main(list(words))
    sys.stdout.flush()
    sys.exit(status)
