"""Stage rows: executors ingest what they read into staging over ADBC, keyed by attempt (D3, F57)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from spark_jobs.code_state import in_this_code
from spark_jobs.write import copy


@dataclass(frozen=True)
class StagedRowCount:
    """What the executors report: the attempts to believe, rows and bytes staged."""

    attempts: tuple[int, ...]
    rows: int
    bytes: int


def stage_rows(rows: DataFrame, login: str, relation: str) -> StagedRowCount:
    """Run the DataFrame: every row goes to `concord_staging.relation`. Only attempts that the driver heard of count."""

    def ingest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _ingest(batches, login, relation)

    summary = rows.mapInArrow(in_this_code(ingest), "attempt bigint, rows bigint, bytes bigint").collect()
    return StagedRowCount(
        attempts=tuple(sorted({row["attempt"] for row in summary})),
        rows=sum(row["rows"] for row in summary),
        bytes=sum(row["bytes"] for row in summary),
    )


def _ingest(batches: Iterator[pa.RecordBatch], login: str, relation: str) -> Iterator[pa.RecordBatch]:
    """One task attempt: its rows in one transaction, then one summary row."""
    context = TaskContext.get()
    assert context is not None, "staging runs inside a Spark task"
    attempt, counted, size = context.taskAttemptId(), 0, 0

    def marked() -> Iterator[pa.RecordBatch]:
        nonlocal counted, size
        for batch in batches:
            counted, size = counted + batch.num_rows, size + batch.nbytes
            if batch.num_rows:
                yield batch.append_column("attempt", pa.array([attempt] * batch.num_rows, pa.int64()))

    copy(marked(), login, relation)
    yield pa.RecordBatch.from_pylist([{"attempt": attempt, "rows": counted, "bytes": size}])
