"""The files that a Spark application of Concord's is given and gives back: nobody else may read them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from pydantic import BaseModel

from concord.messages.errors import LinkFailed, from_code
from spark_jobs.code_state import sources

#: The project's root: plugins/concord/orchestration/tasks/job_files.py.
PROJECT = Path(__file__).parents[4]

_PREFIX = "concord-job-"
#: Seconds within which whoever makes a directory has locked it.
_UNHELD = 60.0

Report = TypeVar("Report", bound=BaseModel)


class JobFiles(Generic[Report]):
    """A private directory with the job and, for other machines, the library; the report appears in it."""

    def __init__(self, directory: Path, job: BaseModel, report: type[Report]) -> None:
        self.job, self.report, self._kind = directory / "job.json", directory / "report.json", report
        self._directory = directory
        with os.fdopen(os.open(self.job, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(job.model_dump_json())

    def library(self) -> Path:
        """Our code as one file, so that executors on other machines run the very same version."""
        path = self._directory / "concord.zip"
        _archive(path)
        return path

    def read_report(self) -> Report:
        """The application's report. Raises the error it reported, or LinkFailed when it said nothing."""
        if not self.report.exists():
            raise LinkFailed(
                "the Spark application ended without a report; its last lines in this log say why. Nothing was"
                " written unless it had committed, which the next try finds out"
            )
        reported = json.loads(self.report.read_text())
        if set(reported) == {"error_code", "error_message", "error_facts"}:
            raise from_code(*reported.values())
        return self._kind.model_validate(reported)


@contextmanager
def job_files(job: BaseModel, report: type[Report]) -> Iterator[JobFiles[Report]]:
    """The files of one submission; gone when the block ends, however it ends. The next submission removes the files
    of a task that was killed in it."""
    _clear_up()
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 0700
    held = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)  # for as long as this process lives, and no longer
        yield JobFiles(directory, job, report)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(held)


def _clear_up() -> None:
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another one clears it up, or it is not ours
            _clear_up_if_left(place)


def _clear_up_if_left(place: Path) -> None:
    """Raises OSError where its process lives, or another user owns it."""
    state = place.lstat()
    if state.st_uid != os.geteuid() or time.time() - state.st_mtime < _UNHELD:
        return
    held = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place)
    finally:
        os.close(held)


def _archive(path: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, text in sources():
            archive.writestr(name, text)
