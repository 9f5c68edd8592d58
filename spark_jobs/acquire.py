"""Acquire: a Python data source that reads over ADBC and hands Arrow batches to Spark (performance.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from concord.databases.dialect import Reading
from concord.errors import ConcordError


def acquire(spark: SparkSession, reading: Reading, name: str) -> DataFrame:
    """The rows of `reading`, one partition a query, all in one snapshot."""
    return acquire_together(spark, (reading,), name)


def acquire_together(spark: SparkSession, readings: Sequence[Reading], name: str) -> DataFrame:
    """The rows of several readings of one schema, taken in turn, so that their databases work at the same time.

    Logins and queries travel inside the pickled data source, never as options: options show in Spark's UI.
    """
    columns = readings[0].schema
    turns = zip_longest(*([(reading, query) for query in reading.queries] for reading in readings))
    parts = [part for turn in turns for part in turn if part is not None]

    class Changes(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return columns

        def reader(self, schema: StructType) -> DataSourceReader:
            return Reader(schema)

    class Reader(DataSourceReader):
        def __init__(self, schema: StructType) -> None:
            self._schema = schema

        def partitions(self) -> Sequence[InputPartition]:
            return [InputPartition(part) for part in range(len(parts))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            reading, query = parts[partition.value]
            return _read(reading, query, self._schema)

    spark.dataSource.register(Changes)
    return spark.read.format(name).load()


def _read(reading: Reading, query: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Stream one query's rows as Arrow batches of the declared schema. Raises ConcordError when this
    session does not stand in the link's snapshot: a torn read would send one version's row under another's."""
    # Imported here: it takes a second, and the processes that only plan the read never come here.
    import adbc_driver_postgresql.dbapi as adbc  # noqa: PLC0415

    wanted = to_arrow_schema(schema)
    with adbc.connect(reading.login) as connection, connection.cursor() as cursor:
        for statement in reading.preamble:
            cursor.execute(statement)
        if reading.position is not None:
            cursor.execute(reading.position_query)
            if cursor.fetchone() != (reading.position,):
                raise ConcordError("a reader could not join the link's snapshot; the next run tries again")
        cursor.execute(query)
        for batch in cursor.fetch_record_batch():
            yield batch.cast(wanted)
