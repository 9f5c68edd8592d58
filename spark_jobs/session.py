"""The Spark session of an application that spark-submit has started."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from concord.messages.errors import ConnectionRefused, SparkUnavailable
from concord.messages.event_log import logger_named
from spark_jobs import interruption
from spark_jobs.settings import ON_THIS_MACHINE, SETTINGS, is_local, own_sockets

logger = logger_named("concord.session")

#: The application's own settings, beside those of each session.
_OF_THE_APPLICATION = {
    "spark.speculation": "false",
    # A function larger than that goes by way of a file, and with it the logins that tasks need.
    "spark.broadcast.UDFCompressionThreshold": "1g",
}
#: Where pyspark finds the Java that has started us: no process that we start may attach to it.
_ENTRANCE = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
#: Where it looks for the arguments of spark-submit, where Python starts Java.
_SUBMITTED = "PYSPARK_SUBMIT_ARGS"


def start() -> SparkSession:
    """The session; master, memory, name and jars come from spark-submit.

    Raises ConnectionRefused where a cluster's settings leave the driver open to others.
    """
    builder = SparkSession.builder.config(map={**SETTINGS, **_OF_THE_APPLICATION})
    SparkContext._ensure_initialized()  # Java has read the settings, and nothing listens yet
    given = SparkConf()
    if is_local(given.get("spark.master", "local")):
        builder = builder.config(map={**ON_THIS_MACHINE, **own_sockets()})
    else:
        refuse_without_a_secret(given.get("spark.authenticate"))
    spark = builder.getOrCreate()
    for name in _ENTRANCE:
        os.environ.pop(name, None)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def refuse_without_a_secret(said: str | None) -> None:
    """On a cluster its settings decide: tasks carry the sites' logins, so they must say something.

    Raises ConnectionRefused.
    """
    if said is None:
        raise ConnectionRefused(
            "the settings of the Spark cluster do not say spark.authenticate, and whoever reached the driver's ports"
            " could take the sites' logins. Set spark.authenticate and spark.network.crypto.enabled to true and"
            " spark.authenticate.secret, for the cluster's daemons and in the drivers' spark-defaults.conf."
            " Or say spark.authenticate false there, if nobody else reaches that network"
        )
    if said != "true":
        logger.warning(
            "spark.authenticate is %s: whoever reaches the driver's ports can take the sites' logins", said
        )


class OfThisProcess:
    """A Spark whose driver is this very process: begun when it is first asked for, and ended with this."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """The arguments and the environment of spark-submit."""
        self._arguments, self._environment = arguments, environment
        self._lock = Lock()
        self._session: SparkSession | None = None
        self._others = False  #: somebody else's, who ends it

    def __call__(self) -> SparkSession:
        """The session, whichever thread asks. Raises SparkUnavailable or ConnectionRefused."""
        with self._lock:
            if self._session is None:
                self._others = SparkContext._active_spark_context is not None
                with _environment({**self._environment, _SUBMITTED: shlex.join(self._arguments)}), _told():
                    self._session = start()
                interruption.begin(self.interrupt)
            return self._session

    def interrupt(self) -> None:
        """End what Spark does."""
        if self._session is not None:
            self._session.sparkContext.cancelAllJobs()

    def close(self) -> None:
        """End the session."""
        interruption.ended(self.interrupt)
        session, self._session = self._session, None
        if session is not None and not self._others:
            session.stop()


@contextmanager
def _told() -> Iterator[None]:
    """A Spark that does not start is told in our words; Java has written its own already."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        said = error.java_exception if isinstance(error, Py4JJavaError) else error
        raise SparkUnavailable(
            f"Spark does not start: {str(said).splitlines()[0].rstrip('.')}. Mend the Airflow connection (its host is"
            " the master; its extra has driver-memory), or Java on this machine; nothing was written"
        ) from error


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Java is started with this environment alone: it needs none of Airflow's secrets."""
    hidden = {name: value for name, value in os.environ.items() if wanted.get(name) != value}
    added = set(wanted) - set(os.environ)
    try:
        for name in hidden:
            del os.environ[name]
        os.environ.update(wanted)
        yield
    finally:
        for name in added:
            del os.environ[name]
        os.environ.update(hidden)
