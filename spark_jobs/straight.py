"""The straight way: one task reads a part of a table's changes and stages them, and no row enters Java.

For tables that neither site maps, whose changes meet nothing at the target: then there is nothing to join and nothing
to compute, and the two ways between Python and Java would take as long as both databases together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from concord.databases.dialect import Reading, Shape
from spark_jobs.acquire import tasks
from spark_jobs.write import DECIDED, StagedTable, Summary, attempt, believed


def goes_straight(source: Shape, target: Shape) -> bool:
    """Is there nothing to compute for a change that meets nothing?"""
    return not (source.manipulation or target.manipulation or target.policy.asks)


def stage_straight(spark: SparkSession, reading: Reading, login: str, relation: str) -> StagedTable:
    """What `resolve.unopposed` and `write.stage` do together: every row applies, unless the write finds otherwise.

    Without Spark SQL, which would only be started for this.
    """
    parts, read = tasks((reading,))

    def staged(numbers: Iterable[int]) -> Iterator[Summary]:
        batches = (_unopposed(batch) for number in numbers for batch in read(number))
        return attempt(batches, login, relation)

    return believed(spark.sparkContext.parallelize(range(parts), parts).mapPartitions(staged).collect())


def _unopposed(batch: pa.RecordBatch) -> pa.RecordBatch:
    for name in DECIDED:
        said = pa.scalar("apply" if name == "verdict" else None, pa.string())
        batch = batch.append_column(name, pa.repeat(said, batch.num_rows))
    return batch
