"""An application that turns out to need no Spark has not waited for it."""

import subprocess
import sys

import pytest

#: They take longer to import than a load of some hundred thousand rows takes.
SPARKS = ("pyspark", "pyarrow", "numpy")


def imported(program: str) -> str:
    """Which of them a program has imported at its end."""
    told = f"import sys\n{program}\nprint([name for name in {SPARKS} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", told], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize("application", ["link", "compare", "initialize", "snapshot"])
def test_it_imports_nothing_of_sparks_before_a_step_is_sparks(application: str) -> None:
    assert imported(f"import spark_jobs.{application}") == "[]"


def test_nor_does_whoever_runs_it_as_submitted() -> None:
    ran = """
import os, tempfile
from pathlib import Path
from pydantic import BaseModel
from spark_jobs.application import run
class Nothing(BaseModel): ...
with tempfile.TemporaryDirectory() as place:
    job, report = Path(place, "job"), Path(place, "report")
    os.close(os.open(job, os.O_CREAT | os.O_WRONLY, 0o600))
    job.write_text("{}")
    assert run(Nothing, lambda job, spark, progress, tell: Nothing(), [str(job), str(report)]) == 0"""
    assert imported(ran).endswith("[]")
