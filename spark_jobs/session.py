"""The Spark session of a transmission: started only when there is something to move (performance.md)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from spark_jobs.gateway import close_entrance, open_gateway


def start(name: str) -> SparkSession:
    """The session of this application; master, memory and jars come from spark-submit."""
    open_gateway()
    spark = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "20000")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.speculation", "false")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    close_entrance()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
