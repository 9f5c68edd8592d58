"""Workers prepared while Java starts: taken where they are there, done without where not, and never left behind."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.spark

BEGIN = """
import os, signal, sys, time
import psutil
from spark_jobs import prepared_workers
from spark_jobs.session import start

def of_the_worker(numbers):
    yield psutil.Process(os.getppid()).cmdline()[2], os.environ.get("OF_THE_EXECUTOR")

def ask():
    spark = start("test")
    return spark.sparkContext.parallelize([0], 1).mapPartitions(of_the_worker).collect()[0]
"""
Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin(java: Path, tmp_path: Path) -> Begin:
    """Submit an application; its temporary files are below `tmp_path`."""

    def submit(script: str, *options: str) -> subprocess.Popen[str]:
        program = tmp_path / "application.py"
        program.write_text(f"{BEGIN}{script}")
        command = [PROJECT / "spark_jobs" / "spark-submit", "--master", "local[1]", *options, program]
        return subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
        )

    return submit


def said(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output


def test_workers_are_forked_from_what_was_prepared_in_the_environment_that_spark_gave_them(
    begin: Begin,
) -> None:
    given = ("--conf", "spark.executorEnv.OF_THE_EXECUTOR=yes")
    assert said(begin("print(*ask())", *given)) == "spark_jobs.prepared_workers yes\n"


def test_a_daemon_that_has_ended_is_done_without(begin: Begin) -> None:
    end = """
spark = start("test")
prepared_workers._PREPARED[0].kill()
prepared_workers._PREPARED[0].wait()
print(ask()[0])
"""
    assert said(begin(end)) == "spark_jobs.lean_worker_daemon\n"


@pytest.mark.parametrize("asked", ["", "ask(); "], ids=["before it was asked", "after"])
def test_a_driver_that_is_killed_takes_its_daemon_with_it(begin: Begin, tmp_path: Path, asked: str) -> None:
    driver = begin(
        f'start("test"); {asked}print(prepared_workers._PREPARED[0].pid, flush=True); time.sleep(60)'
    )
    assert driver.stdout is not None
    daemon = int(driver.stdout.readline())
    assert psutil.pid_exists(daemon)
    driver.kill()
    driver.communicate()
    until = time.monotonic() + 30
    while psutil.pid_exists(daemon) or list(tmp_path.glob("concord-workers-*")):
        assert time.monotonic() < until
        time.sleep(0.05)
