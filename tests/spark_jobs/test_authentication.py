"""Nobody without the application's secret is answered on a driver's ports: tasks carry logins (issue 27, 3; S5)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

pytestmark = pytest.mark.spark

CANARY = "a password that nothing else says: 8f3c1d77"

DRIVER = """
import subprocess, sys
from spark_jobs.session import start

password = sys.argv[1]
spark = start("carries a login", asks=True)
context = spark.sparkContext
assert context.parallelize([0], 1).map(lambda _: len(password)).collect() == [len(password)]
environment = context._jvm.org.apache.spark.SparkEnv.get()
settings = dict(context.getConf().getAll())
print("authenticates:", settings["spark.authenticate"], "; has told:", "spark.authenticate.secret" in settings)
rpc, blocks = environment.rpcEnv().address(), environment.blockManager().blockManagerId()
subprocess.run([*sys.argv[2:], rpc.host(), str(rpc.port()), str(blocks.port())], check=True)
"""


def attacked(tmp_path: Path, program: str = DRIVER) -> dict[str, str]:
    """What another process took of a driver that Concord has started, by the name of the attempt."""
    application = tmp_path / "application.py"
    application.write_text(program)
    plain = ["env", "-u", "PYSPARK_SUBMIT_ARGS", "-u", "PYTHONPATH", sys.executable]
    intruder = [*plain, str(PROJECT / "tests" / "spark_jobs" / "intruder.py")]
    ran = subprocess.run(
        [
            str(PROJECT / "spark_jobs" / "spark-submit"),
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
    assert ran.returncode == 0, ran.stderr[-3000:]
    return dict(line.split(" ", 1) for line in ran.stdout.splitlines())


def test_another_process_of_the_machine_takes_no_block_of_a_driver_and_reaches_no_endpoint(
    tmp_path: Path,
) -> None:
    found = attacked(tmp_path)
    assert found["authenticates:"] == "true ; has told: False"
    assert found["block"].startswith("failed: "), found
    assert found["endpoint"].startswith("failed: "), found
    assert CANARY not in str(found)


def test_without_a_secret_it_would_take_the_login_out_of_a_task(tmp_path: Path) -> None:
    """That the attack is one: the same driver as Spark starts it where nothing is said."""
    careless = (
        "import spark_jobs.session\nspark_jobs.session._SECRET = {'spark.authenticate': 'false'}\n" + DRIVER
    )
    found = attacked(tmp_path, careless)
    assert CANARY in found["block"]
    assert found["endpoint"].startswith("took ")
