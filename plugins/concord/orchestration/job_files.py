"""What a Spark application of Concord's is given and gives back: files that nobody else may read (S5)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from pydantic import BaseModel

from concord.errors import LinkFailed, from_code

#: The project's root: plugins/concord/orchestration/job_files.py.
PROJECT = Path(__file__).parents[3]

Report = TypeVar("Report", bound=BaseModel)

#: Packages that Spark imports, and the directory that each is found in.
_LIBRARY = {"concord": PROJECT / "plugins", "spark_jobs": PROJECT}
#: These stay with Airflow.
_AIRFLOW_ONLY = ("orchestration", "repository", "command.py", "__main__.py", "__pycache__")


class JobFiles(Generic[Report]):
    """A private directory with the job and, for other machines, the library; the report appears in it."""

    def __init__(self, directory: Path, job: BaseModel, report: type[Report]) -> None:
        self.job, self.report, self._kind = directory / "job.json", directory / "report.json", report
        self._directory = directory
        with os.fdopen(os.open(self.job, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(job.model_dump_json())

    def library(self) -> Path:
        """Our code as one file, so that executors on other machines run the very same version (design 3)."""
        path = self._directory / "concord.zip"
        _archive(path)
        return path

    def read_report(self) -> Report:
        """What the application reported. Raises the error it reported, or LinkFailed when it said nothing."""
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
    """The files of one submission; gone when the block ends, however it ends."""
    directory = Path(tempfile.mkdtemp(prefix="concord-"))  # mode 0700
    try:
        yield JobFiles(directory, job, report)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _archive(path: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for package, root in _LIBRARY.items():
            for module in sorted((root / package).rglob("*.py")):
                name = module.relative_to(root)
                if not set(name.parts[1:]) & set(_AIRFLOW_ONLY):
                    archive.write(module, name)
