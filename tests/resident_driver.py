"""A driver that stays, for tests that submit more than one application and are not about its start."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import PROJECT


@contextmanager
def resident_driver(place: Path, project: Path = PROJECT) -> Iterator[None]:
    """It listens at `place`, runs the code of `project`, and is gone when the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "spark_jobs.resident", place],
        cwd=place.anchor,  # where Python finds nothing
        env={**os.environ, "PYTHONPATH": f"{project}:{project / 'plugins'}"},
    )
    until = time.monotonic() + 60
    while not place.exists():
        assert time.monotonic() < until, "it does not listen"
        assert process.poll() is None, "it ended"
        time.sleep(0.05)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
