"""Acquire: a Python data source that reads over ADBC and hands Arrow batches to Spark (performance.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from concord.databases.dialect import Reading


def acquire(spark: SparkSession, reading: Reading, name: str) -> DataFrame:
    """The rows of `reading`, one partition a query, all in one snapshot.

    Login and queries travel inside the pickled data source, never as options: options show in Spark's UI.
    """
    login, preamble, queries, columns = reading.login, reading.preamble, reading.queries, reading.schema

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
            return [InputPartition(part) for part in range(len(queries))]

        def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
            return _read(login, preamble, queries[partition.value], self._schema)

    spark.dataSource.register(Changes)
    return spark.read.format(name).load()


def _read(login: str, preamble: Sequence[str], query: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Stream one query's rows as Arrow batches of the declared schema."""
    wanted = to_arrow_schema(schema)
    with adbc.connect(login) as connection, connection.cursor() as cursor:
        for statement in preamble:
            cursor.execute(statement)
        cursor.execute(query)
        for batch in cursor.fetch_record_batch():
            yield batch.cast(wanted)
