"""A driver that stays: what is handed over to it runs as spark-submit would run it, only sooner (issue: warm mode)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from concord.link import TransmissionReport
from tests.conftest import PROJECT
from tests.link.conftest import MakePair
from tests.resident_driver import resident_driver

pytestmark = pytest.mark.spark

SPARK = "from spark_jobs.session import start; spark = start('test')"
WHICH = f"{SPARK}; print(spark.sparkContext.applicationId)"
SUBMIT = (PROJECT / "spark_jobs" / "spark-submit", "--master", "local[2]", "--name", "a test")
LONG = "spark.range(2).mapInArrow(lambda rows: __import__('time').sleep(60), 'id long').collect()"
Begin = Callable[..., subprocess.Popen[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def socket(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the resident driver of these tests listens."""
    place = tmp_path_factory.mktemp("resident") / "private" / "socket"
    with resident_driver(place):
        yield place


@pytest.fixture
def begin(socket: Path, tmp_path: Path) -> Begin:
    """Submit a script, or an application of ours, with the socket in the environment."""

    def begin(script: str, *options: str, **environment: str) -> subprocess.Popen[str]:
        program = PROJECT / "spark_jobs" / script
        if not script.endswith(".py"):
            program = tmp_path / "application.py"
            program.write_text(script)
        return subprocess.Popen(
            [*SUBMIT, *options, program],
            env={**os.environ, "CONCORD_RESIDENT": str(socket), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.fixture
def run(begin: Begin) -> Run:
    def run(script: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        with begin(script, *options, **environment) as process:
            said, complained = process.communicate(timeout=120)
        return subprocess.CompletedProcess(script, process.returncode, said, complained)

    return run


def test_applications_share_one_spark_and_each_ends_as_it_would_alone(run: Run) -> None:
    first, second = (run(f"{WHICH}; import sys; sys.exit({status})") for status in (0, 3))
    assert first.stdout == second.stdout
    assert first.stdout.startswith("local-")
    assert (first.returncode, second.returncode) == (0, 3)


def test_an_error_is_told_where_the_application_was_submitted(run: Run) -> None:
    ended = run("raise ValueError('of the application')")
    assert ended.returncode == 1
    assert "ValueError: of the application" in ended.stderr


def test_java_forgets_what_an_ended_application_had_made(run: Run) -> None:
    made = run(f"{SPARK}; made = spark.range(7); print(made._jdf._target_id)").stdout.strip()
    asked = f"""
{SPARK}
from py4j.java_gateway import JavaObject
print(JavaObject({made!r}, spark.sparkContext._gateway._gateway_client).count())
"""
    assert "does not exist" in run(asked).stderr


def test_applications_run_beside_each_other(begin: Begin) -> None:
    counted = f"{SPARK}; print(sum(spark.range(n).count() for n in range(5)))"
    together = [begin(counted) for _ in range(3)]
    assert [process.communicate(timeout=120)[0] for process in together] == ["10\n"] * 3


def test_who_submitted_it_is_killed_and_so_is_the_application_with_its_tasks(begin: Begin, run: Run) -> None:
    waiting = begin(f"import os; {SPARK}; print(os.getpid(), flush=True); {LONG}")
    assert waiting.stdout is not None
    application = psutil.Process(int(waiting.stdout.readline()))
    waiting.kill()
    waiting.communicate()
    application.wait(10)
    # Both of Spark's places were taken: a task of the next application only runs where the old one ended.
    began = time.monotonic()
    assert run(f"{SPARK}; print(spark.range(3).rdd.count())").stdout == "3\n"
    assert time.monotonic() - began < 30


def test_an_application_of_other_options_runs_where_it_was_submitted(run: Run) -> None:
    ended = run("print('here')", "--conf", "spark.sql.shuffle.partitions=7")
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "other options; Spark is started for this run" in ended.stderr


def test_without_a_resident_driver_an_application_runs_where_it_was_submitted(
    run: Run, tmp_path: Path
) -> None:
    ended = run("print('here')", CONCORD_RESIDENT=str(tmp_path / "nobody"))
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "No such file or directory; Spark is started for this run" in ended.stderr


def test_a_link_is_handed_over_and_its_logins_are_not_left_behind(
    pair: MakePair, run: Run, tmp_path: Path
) -> None:
    sites = pair("CREATE TABLE flight (id int PRIMARY KEY, note text)")
    sites.london.run("INSERT INTO flight SELECT n, 'london' FROM generate_series(1, 9) n")
    job, report = tmp_path / "job.json", tmp_path / "report.json"
    job.touch(mode=0o600)
    job.write_text(sites.job().model_dump_json())
    ended = run("link.py", CONCORD_JOB=str(job), CONCORD_REPORT=str(report))
    assert ended.returncode == 0, ended.stderr
    assert "transmission completed" in ended.stdout
    assert ended.stderr == ""
    assert TransmissionReport.model_validate_json(report.read_text()).total("applied") == 9
    assert sites.equal
    assert not job.exists()


def test_it_begins_anew_when_its_java_has_ended(run: Run, socket: Path) -> None:
    before = run(WHICH).stdout
    java = run(f"{SPARK}; print(spark._jvm.java.lang.ProcessHandle.current().pid())").stdout
    os.kill(int(java), signal.SIGKILL)
    until = time.monotonic() + 60
    while not has_ended(int(java)):
        assert time.monotonic() < until
        time.sleep(0.01)
    while (between := run("print('here')")).stderr:
        assert between.stdout == "here\n"
        assert time.monotonic() < until
    assert run(WHICH).stdout not in ("", before)


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_an_application_ends_with_the_resident_driver(begin: Begin, socket: Path) -> None:
    waiting = begin(f"import os; print(os.getpid(), os.getppid(), flush=True); {SPARK}; {LONG}")
    assert waiting.stdout is not None
    application, resident = map(psutil.Process, map(int, waiting.stdout.readline().split()))
    assert "spark_jobs.resident" in resident.cmdline()
    resident.kill()
    application.wait(10)
    _, complained = waiting.communicate(timeout=10)
    assert (waiting.returncode, complained) == (1, "the resident driver ended, and the application with it\n")
    socket.unlink()
