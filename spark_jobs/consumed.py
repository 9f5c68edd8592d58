"""A publisher's operations as Spark's DataFrames (S0-41)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.databases.contract.consumed import Operation

SCHEMA = (
    "number bigint, committed_at timestamp, seq int, table string, operation string, key map<string, string>,"
    " row map<string, string>"
)


def frame_of(spark: SparkSession, operations: Sequence[Operation]) -> DataFrame:
    """One row for each operation; values are the publisher's texts."""
    return spark.createDataFrame(list(operations), SCHEMA)


def typed(frame: DataFrame, types: Mapping[str, str]) -> DataFrame:
    """One table's operations, its columns in `values` as Spark's own. Of a row that is gone there is the key alone."""
    place = [F.col(name) for name in ("number", "committed_at", "seq", "operation")]
    columns = [_value(name, spark_type).alias(name) for name, spark_type in types.items()]
    return frame.select(*place, F.struct(*columns).alias("values"))


def _value(name: str, spark_type: str) -> Column:
    """Numbers and truth values are spelled in a way that Spark reads; bytes are hexadecimal."""
    text = F.coalesce(F.col("row")[name], F.col("key")[name])
    if spark_type == "binary":
        return F.unhex(F.substring(text, 3, 2**31 - 1))
    return text.cast(spark_type)
