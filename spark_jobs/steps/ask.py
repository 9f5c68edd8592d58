"""Ask: executors call somebody else's function about the conflicts that reach it (`custom`)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from spark_jobs.code_state import in_this_code
from spark_jobs.steps.custom import MERGED, REST, Layout, answered


def ask(decided: DataFrame, layout: Layout) -> DataFrame:
    """Every row whose verdict is ASK gets that of the function that `resolver` names, or of the rest of its chain.
    Adds `merged`: the new row as JSON, each value as the text that the database reads."""
    rest = [f"rest_{name}" for name in REST]
    fields = [field for field in decided.schema.fields if field.name not in rest]
    schema = StructType(fields).add(MERGED, StringType())

    def with_answers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield answered(batch, layout).select(schema.names)

    return decided.mapInArrow(in_this_code(with_answers), schema)
