"""The straight way as one job of Spark, where rows are many: `transmission.straight` says what that way is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from concord.databases.contract.reading import Relay, Relayed
from concord.transmission.staged_table import StagedTable
from concord.transmission.straight import Way, by_route, parts_of, stage_part
from spark_jobs.code_state import in_this_code
from spark_jobs.steps.acquire import arrow_schema

#: A task's words about each part that it has staged.
_COUNTED = "ordinal int, attempt bigint, rows bigint, removals bigint, bytes bigint"


def stage_straight(
    spark: SparkSession, relay: Callable[[], Relay], routes: Sequence[Way], login: str, readers: int
) -> list[StagedTable]:
    """Do together what `resolve.unopposed` and `stage` do: every row applies, unless the write finds otherwise.

    No more than `readers` tasks run at once, each with one connection of the source at a time (S0-45). Their shares are
    dealt out in turn, so that each has some of every table.
    """
    parts = parts_of(routes, login)
    shares, schema = min(readers, len(parts)), arrow_schema(_COUNTED)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None, "inside a task"
        with relay() as stage:
            for share in (each for batch in batches for each in batch.column(0).to_pylist()):
                for number in range(share, len(parts), shares):
                    ordinal, part = parts[number]
                    done = stage_part(stage, part, context.taskAttemptId() * len(parts) + number)
                    yield pa.RecordBatch.from_pylist([{"ordinal": ordinal, **asdict(done)}], schema)

    # Logins are in the function. Spark shows its data, and writes them to files.
    counted = spark.range(0, shares, 1, shares).mapInArrow(in_this_code(run), _COUNTED).collect()
    return by_route(routes, [(ordinal, Relayed(*relayed)) for ordinal, *relayed in counted])
