"""Acquire: tasks that read over ADBC and hand Arrow batches to Spark (performance.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa

from concord.databases.contract.reading import Reading, ddl_columns
from concord.messages.errors import SiteUnavailable
from spark_jobs.code_state import in_this_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]

#: The columns that travel, as Spark's DDL and as Arrow call them.
ARROW_TYPES = {
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
}


def acquire(spark: SparkSession, reading: Reading) -> DataFrame:
    """The rows of `reading`, one partition a query, all in one cut."""
    return acquire_together(spark, (reading,))


def acquire_together(spark: SparkSession, readings: Sequence[Reading]) -> DataFrame:
    """The rows of several readings of one schema, taken in turn, so that their databases work at the same time.

    Logins and queries travel inside the pickled function, never as options: options show in Spark's UI. A function
    over the numbers of the queries is planned at once; a Python data source asks Python twice before it is.
    """
    wanted = arrow_schema(readings[0].schema)
    turns = zip_longest(*([(reading, query) for query in reading.queries] for reading in readings))
    parts = [part for turn in turns for part in turn if part is not None]

    def read_numbered(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                reading, query = parts[number]
                yield from _read(reading, query, wanted)

    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(
        in_this_code(read_numbered), readings[0].schema
    )


def arrow_schema(ddl: str) -> pa.Schema:
    """The same columns for Arrow, without asking Java."""
    return pa.schema([(name, ARROW_TYPES[kind]) for name, kind in ddl_columns(ddl)])


def _read(reading: Reading, query: str, wanted: pa.Schema) -> Batches:
    """Stream one query's rows as Arrow batches of the declared schema. Raises SiteUnavailable when this
    connection does not stand in the link's cut: a torn read would send one version's row under another's."""
    # Imported here: it takes a second, and the processes that only plan the read never come here.
    from spark_jobs.adbc_connection import connect  # noqa: PLC0415

    with connect(reading.login) as connection, connection.cursor() as cursor:
        for statement in reading.preamble:
            cursor.execute(statement)
        if reading.position is not None:
            cursor.execute(reading.position_query)
            if cursor.fetchone() != (reading.position,):
                raise SiteUnavailable("a reader could not join the link's cut; the next run tries again")
        cursor.execute(query)
        for batch in cursor.fetch_record_batch():
            yield batch.cast(wanted)
