"""By Spark: many rows of two sites laid side by side, the buckets dealt out to as many tasks as the sites allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel

from concord.comparison.differing import Differing
from concord.comparison.joined import joined
from concord.comparison.side import Side
from concord.databases.contract.compared_site import Reader
from concord.jobs.comparison import Kind
from spark_jobs.code_state import in_this_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batches = Iterator[pa.RecordBatch]

#: Differences that a task hands over at once.
AT_ONCE = 10_000

_SCHEMA = "key string, kind string, in_flight boolean, at_source boolean, at_target boolean"
_ARROW = pa.schema(
    [
        ("key", pa.string()),
        ("kind", pa.string()),
        *((name, pa.bool_()) for name in ("in_flight", "at_source", "at_target")),
    ]
)


def joined_by_spark(
    spark: SparkSession, source: Side, target: Side, wanted: Sequence[int], priorities: Mapping[str, int]
) -> Iterator[Differing]:
    """Each task does what the driver would do, with its share of the buckets and connections of its own (S0-45).

    Logins are in the function: options and plans show in Spark's UI. The differences stay on the executors' disks until
    they are taken.
    """
    shares = _shares(source, target, wanted)
    filtered = bool(source.shape.where)

    def judge(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                readers, questions = shares[number]
                yield from _in_batches(joined(readers, questions, priorities, filtered=filtered))

    tasks = spark.range(0, len(shares), 1, len(shares))
    found = tasks.mapInArrow(in_this_code(judge), _SCHEMA).persist(StorageLevel.DISK_ONLY)
    try:
        found.count()  # all tasks at once; the rows are then taken one task after the other
        for row in found.toLocalIterator():
            yield Differing(
                row["key"], Kind(row["kind"]), row["in_flight"], row["at_source"], row["at_target"]
            )
    finally:
        found.unpersist()


Share = tuple[tuple[Reader, Reader], tuple[str, str]]


def _shares(source: Side, target: Side, wanted: Sequence[int]) -> list[Share]:
    """The sites' own connections, which hold the cuts, do nothing meanwhile, so that one more reader is allowed."""
    ours, theirs = source.travelling_readers(), target.travelling_readers()
    number = min(len(ours), len(theirs), len(wanted))
    return [
        ((ours[share], theirs[share]), (source.held(some), target.held(some)))
        for share in range(number)
        for some in [wanted[share::number]]
    ]


def _in_batches(found: Iterator[Differing]) -> Batches:
    waiting: list[Differing] = []
    for each in found:
        waiting.append(each)
        if len(waiting) == AT_ONCE:
            yield _batch(waiting)
            waiting.clear()
    yield _batch(waiting)


def _batch(found: Sequence[Differing]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([each._asdict() for each in found], schema=_ARROW)
