"""A driver's Java started by us: asked for late, started quickly, and never left behind (issue: fixed cost)."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from concord.java import home_of_the_wheel
from spark_jobs.archive import upon
from spark_jobs.java_command import JavaCommand, java_command
from tests.conftest import PROJECT

COUNT = """
import sys
from spark_jobs.session import start
print("counted", start("test").range(1000).count(), *sys.argv[1:])
"""
WHICH_PANDAS = """
import sys
from spark_jobs.session import start

def task(numbers):
    import adbc_driver_postgresql.dbapi
    yield "pandas" in sys.modules

spark = start("test", asks=sys.argv[1] == "asks")
print("pandas:", *spark.sparkContext.parallelize([0], 1).mapPartitions(task).collect())
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def installed(java: Path) -> Path:
    """The archive that `make install` has made for this Java; made now where it was not."""
    subprocess.run([sys.executable, "-m", "spark_jobs.archive"], check=True)
    command = java_command(["pyspark-shell"])
    assert command is not None
    return command.archive


@pytest.fixture
def own_cache(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "concord").mkdir(parents=True)
    return tmp_path / "cache" / "concord"


@pytest.fixture
def run(own_cache: Path, tmp_path: Path) -> Run:
    """Submit a script with our spark-submit, and wait for its end."""

    def submit(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "application.py"
        program.write_text(script)
        command = [
            PROJECT / "spark_jobs" / "spark-submit",
            "--master",
            "local[1]",
            "--name",
            "a test",
            program,
        ]
        return subprocess.run(
            [*command, *arguments],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return submit


def test_an_application_that_asks_for_no_session_starts_no_java(run: Run) -> None:
    ended = run("import sys; print(sys.argv[1:]); sys.exit(3)", "one", "--two", JAVA_HOME="/nowhere")
    assert (ended.stdout, ended.returncode) == ("['one', '--two']\n", 3)


def test_a_start_takes_its_classes_from_the_archive_and_a_damaged_one_costs_time_and_nothing_else(
    installed: Path, run: Run, own_cache: Path, tmp_path: Path
) -> None:
    archive = Path(shutil.copy(installed, own_cache))
    loaded = tmp_path / "loaded"
    ended = run(COUNT, "x", JDK_JAVA_OPTIONS=f"-Xlog:class+load:file={loaded}")
    assert (ended.stdout, ended.returncode) == ("counted 1000 x\n", 0), ended.stderr
    shared = [line for line in loaded.read_text().splitlines() if "source: shared objects file (top)" in line]
    assert len(shared) > 5_000
    archive.write_bytes(archive.read_bytes()[:100_000])
    ended = run(COUNT)
    assert (ended.stdout.splitlines()[-1], ended.returncode) == ("counted 1000", 0), ended.stderr
    # Java 17 dies of it, and it is removed; later ones say nothing and go on without it.
    assert not archive.exists() or "did not start in the quick way" not in ended.stderr


def test_a_java_that_comes_without_an_archive_of_its_own_classes_gets_one(own_cache: Path) -> None:
    java = str(home_of_the_wheel() / "bin" / "java")
    archived = [java, "-Xshare:on", "-version"]
    assert subprocess.run(archived, check=False, capture_output=True).returncode != 0
    (option,) = upon(JavaCommand((java,), "any"))
    subprocess.run([java, option, *archived[1:]], check=True, capture_output=True)


def test_a_process_that_we_start_does_not_meet_our_java(run: Run) -> None:
    started = "import os; from spark_jobs.session import start; start('a'); start('b')"
    assert run(f"{started}; print('GATEWAY' in str(os.environ))").stdout == "False\n"


def test_java_ends_when_python_is_killed(own_cache: Path, tmp_path: Path) -> None:
    script = "from spark_jobs.session import start; import time; start('t'); print('up', flush=True); time.sleep(99)"
    python = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert python.stdout is not None
    assert python.stdout.readline() == b"up\n"
    (java,) = _children(python.pid)
    os.kill(python.pid, signal.SIGKILL)
    python.wait()
    until = time.monotonic() + 60
    while Path(f"/proc/{java}/cmdline").exists() and Path(f"/proc/{java}/cmdline").read_bytes():
        assert time.monotonic() < until, "Java outlived Python"
        time.sleep(0.1)
    python.stdout.close()


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in listed for child in file.read_text().split()]


def test_sparks_own_environment_file_is_left_to_sparks_own_scripts(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert java_command(["pyspark-shell"]) is not None
    (tmp_path / "spark-env.sh").touch()
    assert java_command(["pyspark-shell"]) is None


def test_without_java_pyspark_is_left_to_say_so(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    assert java_command(["pyspark-shell"]) is None


def test_the_command_follows_the_configuration_and_is_remembered(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    def command(options: str = "") -> tuple[str, ...]:
        found = java_command([*options.split(), "pyspark-shell"])
        assert found is not None
        return found.words

    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text("spark.driver.memory 700m\n")
    first = command()
    assert "-Xmx700m" in first
    assert "-Xmx900m" in command("--driver-memory 900m")
    with monkeypatch.context() as asked_again:
        asked_again.setattr("spark_jobs.java_command.subprocess.run", None)
        assert command("--name another --py-files another.zip") == first
    defaults.write_text("spark.driver.memory 1100m\n")
    assert "-Xmx1100m" in command()


@pytest.mark.parametrize(("asks", "found"), [("asks", True), ("does not ask", False)])
def test_workers_start_without_pandas_unless_somebody_elses_function_may_want_it(
    run: Run, asks: str, found: bool
) -> None:
    assert run(WHICH_PANDAS, asks).stdout == f"pandas: {found}\n"
