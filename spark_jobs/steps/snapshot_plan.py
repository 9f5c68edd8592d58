"""A plan of a refresh: how many rows it would write, by what the source holds at this moment."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from concord.databases.contract.reading import Reading
from concord.databases.contract.snapshot_ends import Written
from spark_jobs.steps.acquire import acquire


def by_keys(spark: SparkSession, changed: Reading) -> Written:
    """Of an incremental refresh: changed keys are in the query, or out of it."""
    rows = acquire(spark, changed).groupBy("gone").count().collect()
    counts = {row["gone"]: row["count"] for row in rows}
    return Written(updated=counts.get(False, 0), deleted=counts.get(True, 0))


def by_digests(spark: SparkSession, source: Reading, target: Reading) -> Written:
    """Of a full refresh: rows by digest and number of copies, which one side alone has, or both."""
    wanted, present = acquire(spark, source), acquire(spark, target)
    sides = wanted.withColumn("copies", F.lit(1)).unionByName(present.withColumn("copies", F.lit(-1)))
    balance = sides.groupBy("digest").agg(F.sum("copies").alias("more"), F.count("*").alias("rows"))
    more = F.col("more")
    counted = balance.select(
        F.sum(F.greatest(more, F.lit(0))).alias("inserted"),
        F.sum(F.greatest(-more, F.lit(0))).alias("deleted"),
        F.sum((F.col("rows") - F.abs(more)) / 2).alias("unchanged"),
    ).collect()[0]
    return Written(
        inserted=int(counted["inserted"] or 0),
        deleted=int(counted["deleted"] or 0),
        unchanged=int(counted["unchanged"] or 0),
    )
