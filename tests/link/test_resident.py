"""A driver that stays: what is handed over to it runs as spark-submit would run it, only sooner (issue: warm mode)."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import AF_UNIX, SOCK_SEQPACKET
from socket import socket as connected
from typing import Any

import psutil
import pytest

from concord.link import SPARK_FROM, TransmissionReport
from spark_jobs.handover import Request, Terms
from tests.conftest import PROJECT
from tests.link.conftest import MakePair
from tests.resident_driver import resident_driver

pytestmark = pytest.mark.spark

SPARK = "from spark_jobs.session import start; spark = start('test')"
WHICH = f"{SPARK}; print(spark.sparkContext.applicationId)"
LOCALLY = ("--master", "local[2]", "--name", "a test")
LONG = "spark.range(2).mapInArrow(lambda rows: __import__('time').sleep(60), 'id long').collect()"
OF_AIRFLOW = "AIRFLOW_CONN_OF_A_TEST"
Begin = Callable[..., subprocess.Popen[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def spark_submit(project: Path) -> Path:
    return project / "spark_jobs" / "spark-submit"


SUBMIT = spark_submit(PROJECT)


@pytest.fixture(scope="module")
def socket(java: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the resident driver of these tests listens."""
    place = tmp_path_factory.mktemp("resident") / "private" / "socket"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OF_AIRFLOW, "postgresql://somebody:secret@localhost/x")
        with resident_driver(place):
            _decide_options(place)
            yield place


def _decide_options(place: Path) -> None:
    """The driver takes those of its first application, whichever test comes first."""
    application = place.with_name("first.py")
    application.write_text(SPARK)
    subprocess.run(
        [SUBMIT, *LOCALLY, application], env={**os.environ, "CONCORD_RESIDENT": str(place)}, check=True
    )


@pytest.fixture
def begin(socket: Path, tmp_path: Path) -> Begin:
    """Submit a script, or an application of ours, with the socket in the environment."""

    def begin(script: str, *options: str, submit: Path = SUBMIT, **environment: str) -> subprocess.Popen[str]:
        program = PROJECT / "spark_jobs" / script
        if not script.endswith(".py"):
            program = tmp_path / "application.py"
            program.write_text(script)
        return subprocess.Popen(
            [submit, *LOCALLY, *options, program],
            env={**os.environ, "CONCORD_RESIDENT": str(socket), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.fixture
def run(begin: Begin) -> Run:
    def run(script: str, *options: str, **given: Any) -> subprocess.CompletedProcess[str]:
        with begin(script, *options, **given) as process:
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


def test_who_is_killed_before_he_is_answered_takes_nobody_with_him(run: Run, socket: Path) -> None:
    """Nor does one of another version of Concord, who asks in words that this one does not know."""
    before = run(WHICH)
    of_others = Request(Terms([], {}, (0, 0)), ["application.py"], {}).message.decode()
    for message in ("", "{}", "[]", "no words", "\0", '["a", {}, null]', of_others):
        with connected(AF_UNIX, SOCK_SEQPACKET) as connection:
            connection.connect(str(socket))
            if message:
                connection.send(message.encode())
    after = run(WHICH)
    assert (after.stdout, after.stderr) == (before.stdout, "")


def test_what_threads_of_an_application_have_begun_in_spark_ends_with_it(
    begin: Begin, run: Run, tmp_path: Path
) -> None:
    """An initialization stages rows in a thread of its own."""
    work = f"(open({str(tmp_path / 'begun')!r}, 'a').close(), __import__('time').sleep(60))"
    job = f"start('test').range(2).mapInArrow(lambda rows: {work}, 'id long').collect()"
    pool = "from concurrent.futures import ThreadPoolExecutor"
    waiting = begin(f"{SPARK}; {pool}; ThreadPoolExecutor(1).submit(lambda: {job}).result()")
    until = time.monotonic() + 60
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    waiting.kill()
    waiting.communicate()
    began = time.monotonic()
    assert run(f"{SPARK}; print(spark.range(3).rdd.count())").stdout == "3\n"
    assert time.monotonic() - began < 30


def test_airflows_secrets_reach_neither_java_nor_an_application(run: Run) -> None:
    asked = f"""
{SPARK}
import json
import os
print(os.environ.get({OF_AIRFLOW!r}), spark._jvm.java.lang.System.getenv({OF_AIRFLOW!r}))"""
    assert run(asked).stdout == "None None\n"


def test_a_signal_to_an_application_ends_it_alone(begin: Begin, run: Run) -> None:
    waiting = begin(f"import os; print(os.getpid(), flush=True); {SPARK}; {LONG}")
    assert waiting.stdout is not None
    os.kill(int(waiting.stdout.readline()), signal.SIGTERM)
    waiting.communicate(timeout=10)
    assert waiting.returncode == 1
    assert run(WHICH).stderr == "", "the others still find it"


def test_an_application_of_other_options_runs_where_it_was_submitted(run: Run) -> None:
    ended = run("print('here')", "--conf", "spark.sql.shuffle.partitions=7")
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "other options; Spark is started for this run" in ended.stderr


def test_an_application_of_another_concord_runs_where_it_was_submitted(run: Run, tmp_path: Path) -> None:
    another = copy_of_concord(tmp_path)
    ended = run("print('here')", submit=another)
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "it runs another Concord; Spark is started for this run" in ended.stderr


def test_a_driver_does_not_run_code_that_has_changed(run: Run, tmp_path: Path) -> None:
    """It begins anew, with the code as it is now, and takes no application meanwhile."""
    another, place = copy_of_concord(tmp_path), tmp_path / "its own" / "socket"
    with resident_driver(place, tmp_path):
        with another.with_name("link.py").open("a") as code:
            code.write("# changed\n")
        ended = run("print('here')", submit=another, CONCORD_RESIDENT=str(place))
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "Spark is started for this run" in ended.stderr


def test_a_driver_does_not_run_code_that_a_link_leads_to_no_more(run: Run, tmp_path: Path) -> None:
    """Releases side by side: the current one is another by now, in which no file has changed since."""
    for release in ("one", "two"):
        copy_of_concord(tmp_path / release)
    current, place = tmp_path / "current", tmp_path / "its own" / "socket"
    current.symlink_to("one")
    with resident_driver(place, current):
        current.unlink()
        current.symlink_to("two")
        ended = run("print('here')", submit=spark_submit(current), CONCORD_RESIDENT=str(place))
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "Spark is started for this run" in ended.stderr


def copy_of_concord(place: Path) -> Path:
    """Its spark-submit."""
    for part in ("spark_jobs", "plugins"):
        shutil.copytree(PROJECT / part, place / part)
    return spark_submit(place)


def test_without_a_resident_driver_an_application_runs_where_it_was_submitted(
    run: Run, tmp_path: Path
) -> None:
    ended = run("print('here')", CONCORD_RESIDENT=str(tmp_path / "nobody"))
    assert (ended.stdout, ended.returncode) == ("here\n", 0)
    assert "No such file or directory; Spark is started for this run" in ended.stderr


@pytest.mark.parametrize(("spark_from", "by_spark"), [(0, True), (SPARK_FROM, False)])
def test_a_link_is_handed_over_and_its_logins_are_not_left_behind(
    pair: MakePair, run: Run, tmp_path: Path, spark_from: int, by_spark: bool
) -> None:
    sites = pair("CREATE TABLE flight (id int PRIMARY KEY, note text)")
    sites.london.run("INSERT INTO flight SELECT n, 'london' FROM generate_series(1, 9) n")
    few = sites.job(spark_from=spark_from)
    job, report = tmp_path / "job.json", tmp_path / "report.json"
    job.touch(mode=0o600)
    job.write_text(few.model_dump_json())
    ended = run("link.py", CONCORD_JOB=str(job), CONCORD_REPORT=str(report))
    assert ended.returncode == 0, ended.stderr
    assert "transmission completed" in ended.stdout
    assert ('step name="start_spark"' in ended.stdout) is by_spark
    assert ended.stderr == ""
    assert TransmissionReport.model_validate_json(report.read_text()).total("applied") == 9
    assert sites.equal
    assert not job.exists()


def test_it_begins_anew_when_its_java_has_ended(run: Run, socket: Path) -> None:
    before = run(WHICH).stdout
    java = run(f"{SPARK}; print(spark._jvm.java.lang.ProcessHandle.current().pid())").stdout
    os.kill(int(java), signal.SIGKILL)
    wait_for_end(int(java))
    begins_anew(run, before)


def test_java_has_ended_and_so_does_who_waits_and_it_begins_anew_all_the_same(begin: Begin, run: Run) -> None:
    before = run(WHICH).stdout
    pid = "spark._jvm.java.lang.ProcessHandle.current().pid()"
    waiting = begin(f"{SPARK}; import time; print({pid}, flush=True); time.sleep(60)")
    assert waiting.stdout is not None
    java = int(waiting.stdout.readline())
    os.kill(java, signal.SIGKILL)
    wait_for_end(java)
    waiting.kill()
    waiting.communicate()
    begins_anew(run, before)


def begins_anew(run: Run, before: str) -> None:
    """Who comes at that moment runs where it was submitted and hears of it, or fails and is tried again."""
    until = time.monotonic() + 60
    while (ended := run(WHICH)).stderr:
        assert ended.stdout or ended.returncode
        assert time.monotonic() < until
    assert ended.stdout.startswith("local-")
    assert ended.stdout != before


def wait_for_end(pid: int) -> None:
    until = time.monotonic() + 60
    while not has_ended(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


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
