"""`python -m spark_jobs.archive`: make the archive of the classes that a transmission's Java loads (AppCDS).

Once for an installation, and again when Java or Spark was changed: an archive of others is not taken. It costs half a
minute and 150 MB in the user's cache directory, and saves some seconds of every start (docs/operations.md).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.java import java_home
from spark_jobs.gateway import Java, submitted
from spark_jobs.java_command import JavaCommand, java_command

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()
#: The collector and the compiler that the operator asks for (`spark_settings`); others take the archive as well.
_JAVA = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={_LOGGING}"
#: Errors only: nobody waits for what is computed here, and Spark warns of a heartbeat that meets its own end.
_OPTIONS = (
    "--master local[1] --driver-memory 1g --conf spark.ui.enabled=false --conf spark.ui.showConsoleProgress=false"
    f" --conf spark.log.level=ERROR --conf 'spark.driver.defaultJavaOptions={_JAVA}' pyspark-shell"
)


def make() -> str:
    """Make it unless it is there; what to tell the person."""
    os.environ |= {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_SUBMIT_ARGS": _OPTIONS,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = java_command(submitted())
    if command is None:
        return "no archive of Java's classes: Spark is started by its own scripts here"
    if command.archive.exists():
        return f"Java's classes are archived already: {command.archive}"
    unfinished = command.archive.with_name(f"{command.archive.name}.{os.getpid()}")
    java = Java(command.words, [*upon(command), f"-XX:ArchiveClassesAtExit={unfinished}"])
    if java.is_attached():
        spark = SparkSession.builder.getOrCreate()
        rehearse(spark)
        spark.stop()
    status = java.end()
    if status or not unfinished.exists():
        unfinished.unlink(missing_ok=True)
        return (
            f"Java wrote no archive of its classes (status {status}; `make` keeps what it said in .venv/java.log);"
            " every link starts some seconds later"
        )
    for old in command.archive.parent.glob("classes-*.jsa"):
        old.unlink()
    unfinished.rename(command.archive)
    return f"Java's classes are archived: {command.archive}"


def upon(command: JavaCommand) -> list[str]:
    """The option that names the archive of Java's own classes, which is made here when Java has come without one."""
    java = command.words[0]
    if _succeeds(java, "-Xshare:on", "-version"):
        return []
    for old in command.base.parent.glob("base-*.jsa"):
        old.unlink()
    named = f"-XX:SharedArchiveFile={command.base}"
    return [named] if _succeeds(java, "-Xshare:dump", named) else []


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows out of Python, as `acquire` reads them."""
    for _ in numbers:
        yield pa.RecordBatch.from_pydict({"id": [1, 2], "vector": ['{"a": [1, 0]}'] * 2})


def _pass(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def rehearse(spark: SparkSession) -> None:
    """What a link asks of Spark, with two rows: read, join both ways, compare, hand to Python, collect."""
    spark.sparkContext.parallelize(range(2), 2).mapPartitions(list).collect()
    changes = spark.range(0, 2, 1, 2).mapInArrow(_read, "id bigint, vector string")
    for present in (F.broadcast(changes), changes.hint("merge")):
        _staged(
            changes.join(present.withColumnRenamed("vector", "p_vector"), on=["id"], how="left")
        ).collect()
    changes.groupBy("vector").agg(F.count("*"), F.min("id")).collect()


def _staged(joined: DataFrame) -> DataFrame:
    vector = F.from_json("vector", "map<string,array<bigint>>")
    seen = F.forall(F.map_entries(vector), lambda entry: entry["value"] >= F.array(F.lit(0), F.lit(0)))
    decided = F.when(seen, F.struct("id", "p_vector") > F.struct("id", "vector")).otherwise(F.lit(None))
    return joined.select("id", decided.alias("decided")).mapInArrow(_pass, "id bigint, decided boolean")


if __name__ == "__main__":
    sys.stdout.write(f"{make()}\n")
