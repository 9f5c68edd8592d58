"""The Spark session of a transmission: started only when there is something to move (performance.md)."""

from __future__ import annotations

import logging

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from concord.errors import ConnectionRefused
from spark_jobs import prepared_workers, sharing
from spark_jobs.gateway import close_entrance, open_gateway, submitted
from spark_jobs.submit import is_local

logger = logging.getLogger("concord.session")


def start(name: str, *, asks: bool = False) -> SparkSession:
    """The session of this application; master, memory and jars come from spark-submit.

    `asks` says that somebody else's functions may run in it, with whatever they import.
    Raises ConnectionRefused where a cluster's settings leave the driver open to others.
    """
    workers = f"spark_jobs.{'worker_daemon' if asks else 'lean_worker_daemon'}"
    if is_local(submitted()):
        prepared_workers.begin(workers)
    open_gateway()
    if not is_local(submitted()):
        _refuse_without_a_secret()
    spark = (
        _with_a_secret(_with_workers(SparkSession.builder, workers))
        .appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20000")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.speculation", "false")
        .config("spark.sql.ansi.enabled", "true")
        # A function larger than that goes by way of a file, and with it the logins that tasks need (S5).
        .config("spark.broadcast.UDFCompressionThreshold", "1g")
        .getOrCreate()
    )
    close_entrance()
    prepared_workers.close_entrance()
    spark.sparkContext.setLogLevel("ERROR")
    if (ours := sharing.group()) is not None:
        spark.sparkContext.setJobGroup(ours, "an application", interruptOnCancel=True)
    return spark


def _with_workers(builder: SparkSession.Builder, daemon: str) -> SparkSession.Builder:
    """On this machine workers are forked from a daemon of ours; on a cluster our code reaches the workers alone."""
    if not is_local(submitted()):
        return builder
    return builder.config("spark.python.daemon.module", daemon)


#: With these Spark itself makes a secret for each application on one machine, and keeps it in the driver's memory: no
#: other process of the machine is answered on the driver's ports. On a cluster its own settings say the same (S5).
_SECRET = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


def _with_a_secret(builder: SparkSession.Builder) -> SparkSession.Builder:
    return builder.config(map=dict(_SECRET)) if is_local(submitted()) else builder


def _refuse_without_a_secret() -> None:
    """On a cluster its settings decide: tasks carry the sites' logins, so they must say something. Java has read them,
    and nothing listens yet.

    Raises ConnectionRefused.
    """
    SparkContext._ensure_initialized()
    settings = SparkConf()
    if settings.get("spark.master", "local").startswith("local"):
        return  # named in the driver's own file, or not at all
    said = settings.get("spark.authenticate")
    if said is None:
        raise ConnectionRefused(
            "the settings of the Spark cluster do not say spark.authenticate, and whoever reached the driver's ports"
            " could take the sites' logins: set spark.authenticate and spark.network.crypto.enabled to true and"
            " spark.authenticate.secret, for the cluster's daemons and in the drivers' spark-defaults.conf;"
            " or say spark.authenticate false there, if nobody else reaches that network"
        )
    if said != "true":
        logger.warning(
            "spark.authenticate is %s: whoever reaches the driver's ports can take the sites' logins", said
        )
