"""`python -m spark_jobs.connect_server`: a Spark Connect server for Concord's links, until SIGTERM or until Java
ends.

A plugin of an ordinary application, so that all sessions share its Python workers. Spark's own SparkConnectServer
makes a new set of them for each session, which takes a second, and never ends one. Master and memory are options,
or come from spark-submit, which may start this file on any cluster. The token is SPARK_CONNECT_AUTHENTICATE_TOKEN
in the environment; without one the server starts on loopback alone.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from concord.machine.environment import of_airflow
from concord.machine.java import java_home
from concord.messages.errors import ConcordError
from spark_jobs.session import refuse_without_a_secret
from spark_jobs.settings import ON_THIS_MACHINE, is_local, own_sockets

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - its name
HOST, PORT = "127.0.0.1", 15002
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
#: Seconds between two looks whether Java still runs.
_PAUSE = 0.5

_CONNECT = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    # The work that a killed driver had asked for ends within seconds; by default its tasks run on for minutes.
    "spark.connect.execute.reattachable.senderMaxStreamDuration": "5s",
    "spark.connect.execute.manager.detachedTimeout": "5s",
    "spark.connect.execute.manager.maintenanceInterval": "1s",
    "spark.speculation": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def settings(master: str, host: str, port: int) -> dict[str, str]:
    """Spark properties of the server. The token is none of them: they stand in a command line, and in Spark's UI."""
    where = {"spark.connect.grpc.binding.address": host, "spark.connect.grpc.binding.port": str(port)}
    return {**_CONNECT, **where, **({**_ON_LOOPBACK, **ON_THIS_MACHINE} if is_local(master) else {})}


def serve(host: str, port: int, given: dict[str, str]) -> None:
    """Start Spark with the plugin, and stay as long as its Java does. Raises ConnectionRefused, as
    `session.start`."""
    for name in of_airflow():
        del os.environ[name]  # neither Java nor somebody else's function needs Airflow's secrets
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(given.items())))
    master = SparkConf().get("spark.master") or "local[*]"
    if not is_local(master):
        refuse_without_a_secret(SparkConf().get("spark.authenticate"))
    sockets = own_sockets() if is_local(master) else {}
    ours = {"spark.master": master, **settings(master, host, port), **sockets, **given}
    spark = SparkSession.builder.appName("concord connect").config(map=dict(ours)).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    sys.stdout.write(f"Spark Connect listens on {host}:{port}, master {master}\n")
    sys.stdout.flush()
    _stay(os.getppid())


def _stay(parent: int) -> None:
    """Java is our child, or, where spark-submit has started us, our parent: who sees it go, goes."""
    gateway = SparkContext._gateway
    java = getattr(gateway, "proc", None)
    while (java.poll() is None) if java is not None else os.getppid() == parent:
        time.sleep(_PAUSE)
    sys.exit("Spark's Java has ended, and the Connect server with it")


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.connect_server", description=__doc__)
    parser.add_argument("--host", default=HOST, help=f"the address it binds (default: {HOST})")
    parser.add_argument("--port", type=int, default=PORT, help=f"default: {PORT}")
    parser.add_argument("--master", help="where its tasks run (default: spark-submit's, else local[*])")
    parser.add_argument("--memory", help="of its Java, as in 2g (default: spark-submit's, else Spark's)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    """Until SIGTERM."""
    asked = _arguments(arguments)
    if not os.environ.get(TOKEN) and asked.host not in _LOOPBACK:
        sys.exit(f"set {TOKEN}: without it everybody who reaches {asked.host} could run any Python here")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = {"spark.master": asked.master, "spark.driver.memory": asked.memory}
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    given["spark.driver.defaultJavaOptions"] = f"-Dlog4j2.configurationFile={log}"
    try:
        serve(asked.host, asked.port, {name: value for name, value in given.items() if value})
    except ConcordError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main(sys.argv[1:])
