"""The straight way: tasks read parts of tables' changes and stage them at once, and no row enters Java.

For tables that neither site maps, whose changes meet nothing at the target: then there is nothing to join and nothing
to compute, and the two ways between Python and Java would take as long as both databases together. All such tables are
one job of Spark, so that a small table does not wait for a large one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from concord.databases.dialect import Reading, Shape, Staged
from spark_jobs.acquire import tasks
from spark_jobs.write import DECIDED, StagedTable, Summary, attempt, believed

#: Stands before the name of the table in what a task says of an error.
STAGING = "while staging "


@dataclass(frozen=True, slots=True)
class Route:
    """The way of one table: what is read of it, and where that is staged."""

    reading: Reading
    place: Staged


def goes_straight(source: Shape, target: Shape) -> bool:
    """Is there nothing to compute for a change that meets nothing?"""
    return not (source.manipulation or target.manipulation or target.policy.asks)


def stage_straight(
    spark: SparkSession, routes: Sequence[Route], login: str, readers: int
) -> list[StagedTable]:
    """What `resolve.unopposed` and `write.stage` do together: every row applies, unless the write finds otherwise.

    Without Spark SQL, which would only be started for this. No more than `readers` tasks run at once, each with one
    session of the source at a time (S0-45); their shares are dealt out in turn, so that each has some of every table.
    """
    places = [(route.place.relation, route.place.shape.name) for route in routes]
    split = [tasks((route.reading,)) for route in routes]
    parts = [(ordinal, number) for ordinal, (count, _) in enumerate(split) for number in range(count)]
    shares = [parts[first::readers] for first in range(min(readers, len(parts)))]

    def staged(mine: Iterable[Sequence[tuple[int, int]]]) -> Iterator[tuple[int, Summary]]:
        for ordinal, number in (part for share in mine for part in share):
            (relation, table), (_, read) = places[ordinal], split[ordinal]
            try:
                for summary in attempt(map(_unopposed, read(number)), login, relation):
                    yield ordinal, summary
            except Exception as error:
                error.add_note(f"{STAGING}{table}")
                raise

    counted: list[list[Summary]] = [[] for _ in routes]
    for ordinal, summary in (
        spark.sparkContext.parallelize(shares, len(shares)).mapPartitions(staged).collect()
    ):
        counted[ordinal].append(summary)
    return [believed(summaries) for summaries in counted]


def _unopposed(batch: pa.RecordBatch) -> pa.RecordBatch:
    for name in DECIDED:
        said = pa.scalar("apply" if name == "verdict" else None, pa.string())
        batch = batch.append_column(name, pa.repeat(said, batch.num_rows))
    return batch
