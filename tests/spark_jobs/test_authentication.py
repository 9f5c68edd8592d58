"""Nobody without the application's secret is answered on a driver's ports: tasks carry logins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from concord.orchestration.tasks import spark_settings
from embedded.spark_cluster import Cluster
from spark_jobs.settings import own_sockets
from tests.conftest import PROJECT

pytestmark = pytest.mark.spark

CANARY = "a password that nothing else says: 8f3c1d77"

DRIVER = """
import subprocess, sys
from pathlib import Path
from spark_jobs.session import start

password = sys.argv[1]
spark = start()
context = spark.sparkContext
assert context.parallelize([0], 1).map(lambda _: len(password)).collect() == [len(password)]
environment = context._jvm.org.apache.spark.SparkEnv.get()
settings = dict(context.getConf().getAll())
print("authenticates:", settings["spark.authenticate"], "; has told:", "spark.authenticate.secret" in settings)
where = Path(settings["spark.python.unix.domain.socket.dir"])
print("sockets:", where, oct(where.stat().st_mode), len(list(where.iterdir())))
rpc, blocks = environment.rpcEnv().address(), environment.blockManager().blockManagerId()
subprocess.run([*sys.argv[2:], rpc.host(), str(rpc.port()), str(blocks.port())], check=True)
"""


def attacked(tmp_path: Path, program: str = DRIVER) -> dict[str, str]:
    """Another process's loot from a driver that Concord has started, by the name of the attempt."""
    application = tmp_path / "application.py"
    application.write_text(program)
    plain = ["env", "-u", "PYSPARK_SUBMIT_ARGS", "-u", "PYTHONPATH", sys.executable]
    intruder = [*plain, str(PROJECT / "tests" / "spark_jobs" / "intruder.py")]
    ran = subprocess.run(
        [
            spark_settings.spark_submit(),
            "--master",
            "local[1]",
            str(application),
            CANARY,
            *intruder,
        ],
        check=False,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=250,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    said = (line.partition(" ") for line in ran.stdout.splitlines())
    return {
        name: what for name, _, what in said if name in ("authenticates:", "sockets:", "block", "endpoint")
    }


@pytest.fixture(scope="module")
def loot(java: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Of one driver, which has ended."""
    return attacked(tmp_path_factory.mktemp("driver"))


def test_another_process_of_the_machine_takes_no_block_of_a_driver_and_reaches_no_endpoint(
    loot: dict[str, str],
) -> None:
    assert loot["authenticates:"] == "true ; has told: False"
    assert loot["block"].startswith("failed: "), loot
    assert loot["endpoint"].startswith("failed: "), loot
    assert CANARY not in str(loot)


def test_workers_are_spoken_to_in_a_directory_that_nobody_else_enters_and_that_goes_with_the_driver(
    loot: dict[str, str],
) -> None:
    directory, mode, sockets = loot["sockets:"].split(" ", 2)
    assert int(mode, 8) & 0o777 == 0o700
    assert int(sockets) >= 2, "the driver's own, and that of the process that forks workers"
    assert not Path(directory).exists()


def test_where_the_directory_for_temporary_files_has_a_long_name_workers_are_spoken_to_over_tcp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    own_sockets.cache_clear()
    assert own_sockets() == {}
    own_sockets.cache_clear()


@pytest.mark.long
def test_without_a_secret_it_would_take_the_login_out_of_a_task(tmp_path: Path) -> None:
    """That the attack is one: the same driver as Spark starts it where nothing is said."""
    careless = (
        "import spark_jobs.session\n"
        "spark_jobs.session.ON_THIS_MACHINE = {'spark.authenticate': 'false'}\n" + DRIVER
    )
    found = attacked(tmp_path, careless)
    assert CANARY in found["block"]
    assert found["endpoint"].startswith("took ")


ON_A_CLUSTER = """
import logging, sys
from spark_jobs.session import start

logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
spark = start()
print("ran:", spark.sparkContext.parallelize([1, 2], 1).map(lambda n: n + 1).sum())
"""
#: A port that nobody listens on: a driver that asked there would say so.
NOBODY = "spark://127.0.0.1:1"


def on_a_cluster(
    tmp_path: Path, master: str, *settings: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    application = tmp_path / "application.py"
    application.write_text(ON_A_CLUSTER)
    submit = [spark_settings.spark_submit(), "--master", master]
    given = [word for setting in settings for word in ("--conf", setting)]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return subprocess.run(
        [*submit, *given, "--driver-memory", "512m", str(application)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **environment, **python},
        timeout=250,
    )


def test_a_cluster_whose_settings_say_nothing_of_a_secret_is_refused_before_anybody_is_asked(
    tmp_path: Path,
) -> None:
    ran = on_a_cluster(tmp_path, NOBODY, environment={})
    assert ran.returncode != 0
    assert (
        "ConnectionRefused: the settings of the Spark cluster do not say spark.authenticate"
        in ran.stdout + ran.stderr
    )
    assert (
        "Or say spark.authenticate false there, if nobody else reaches that network"
        in ran.stdout + ran.stderr
    )
    assert "All masters are unresponsive" not in ran.stdout + ran.stderr
    assert "ran:" not in ran.stdout


def test_the_settings_of_the_drivers_own_file_count_as_those_of_the_command_line_do(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.authenticate true\n")
    ran = on_a_cluster(tmp_path, NOBODY, environment={"SPARK_CONF_DIR": str(tmp_path)})
    assert "do not say spark.authenticate" not in ran.stdout + ran.stderr
    assert (
        "A secret key must be specified via the spark.authenticate.secret config" in ran.stdout + ran.stderr
    )


@pytest.mark.long
def test_a_cluster_that_its_operator_calls_open_carries_work_and_the_log_says_so(
    tmp_path: Path, java: Path
) -> None:
    cluster = Cluster(tmp_path, java, os.environ, workers=1, settings={"spark.authenticate": "false"})
    try:
        settings = ("spark.authenticate=false", "spark.executor.memory=512m")
        ran = on_a_cluster(tmp_path, cluster.url, *settings, environment=cluster.environment)
    finally:
        cluster.stop()
    assert "ran: 5" in ran.stdout, ran.stderr[-3000:]
    warned = (
        "concord.session: spark.authenticate is false: whoever reaches the driver's ports can take the sites'"
    )
    assert warned in ran.stdout
