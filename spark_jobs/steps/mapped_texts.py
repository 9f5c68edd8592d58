"""By Spark: many rows of a replicated table, mapped from the publisher's texts to the subscriber's (S0-06).

A second form of `tables.row_mapping`. The rows come back to the driver in their order: only its session has the tables
where they wait for their replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from concord.databases.contract.rows import VERSION_TYPES
from concord.tables.manipulation import Texts
from concord.tables.row_mapping import Mapped, RowMapping
from concord.transmission.errors import worded
from concord.transmission.verdicts import UNFAITHFUL
from spark_jobs.steps.manipulate import manipulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = "place"
#: Of a row that is there, and in scope.
_STANDS = {"deleted": False, "out_of_scope": False}


def mapped_texts(spark: SparkSession, mapping: RowMapping, rows: Sequence[Texts]) -> list[Mapped]:
    """The rows in the target's columns, each with the reason where it does not fit. Raises SparkUnavailable."""
    with worded(f"rows for {mapping.target.site}"):
        frame = spark.createDataFrame(_arrow(mapping, rows))
        versions = [F.lit(_STANDS.get(name)).cast(kind).alias(name) for name, kind in VERSION_TYPES.items()]
        made = manipulate(frame.select("*", *versions), mapping.source, mapping.target, [_PLACE])
        found = made.select(*mapping.target.aliases, UNFAITHFUL, _PLACE).toArrow().sort_by(_PLACE)
    columns = [found.column(alias).to_pylist() for alias in mapping.target.aliases]
    return [
        Mapped(*each)
        for each in zip(zip(*columns, strict=True), found.column(UNFAITHFUL).to_pylist(), strict=True)
    ]


def _arrow(mapping: RowMapping, rows: Sequence[Texts]) -> pa.Table:
    columns = dict(zip(mapping.source.aliases, zip(*rows, strict=True), strict=True))
    texts = {alias: pa.array(values, pa.string()) for alias, values in columns.items()}
    return pa.table({**texts, _PLACE: pa.array(range(len(rows)), pa.int64())})
