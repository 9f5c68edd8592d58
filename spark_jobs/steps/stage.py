"""Write: executors ingest into staging over ADBC, keyed by attempt; nothing else is theirs to write (F57)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from concord.databases.contract.rows import VERSION_TYPES
from concord.transmission.staged_table import SHOWN, StagedTable, some
from concord.transmission.verdicts import SETTLED, STOPPING
from spark_jobs.code_state import in_this_code
from spark_jobs.steps.acquire import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Spark's word on each row, after its version.
DECIDED = ("verdict", "resolver", "reason", "against")

#: Rows of one verdict that a task attempt has staged, or settled.
Summary = Mapping[str, Any]

_SUMMARY = (
    "attempt bigint, verdict string, staged boolean, rows bigint, removals bigint, bytes bigint,"
    " reasons array<string>"
)
_SUMMARY_ARROW = pa.schema(
    [
        ("attempt", pa.int64()),
        ("verdict", pa.string()),
        ("staged", pa.bool_()),
        ("rows", pa.int64()),
        ("removals", pa.int64()),
        ("bytes", pa.int64()),
        ("reasons", pa.list_(pa.string())),
    ]
)


def stage(
    resolved: DataFrame, columns: Sequence[str], login: str, relation: str, carried: Sequence[str] = ()
) -> StagedTable:
    """Run the DataFrame: every row that may change the target goes to `concord_staging.relation`.

    Only attempts whose result reached the driver are believed; a retried or speculative task leaves rows
    that nobody reads. The columns `carried` are staged as they are.
    """
    selected = resolved.select(*columns, *VERSION_TYPES, *DECIDED, *carried)

    def staged(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None, "inside a task"
        for counted in attempt(batches, login, relation, context.taskAttemptId()):
            yield pa.RecordBatch.from_pylist([counted], schema=_SUMMARY_ARROW)

    return believed(row.asDict() for row in selected.mapInArrow(in_this_code(staged), _SUMMARY).collect())


def believed(counted: Iterable[Summary]) -> StagedTable:
    """The counts of the tasks whose result reached the driver."""
    summary = list(counted)
    settled: Counter[str] = Counter()
    for row in summary:
        if not row["staged"]:
            settled[row["verdict"]] += row["rows"]
    staged = [row for row in summary if row["staged"]]
    return StagedTable(
        attempts=tuple(sorted({row["attempt"] for row in staged})),
        settled=settled,
        rows=sum(row["rows"] for row in staged),
        removals=sum(row["removals"] for row in staged),
        bytes=sum(row["bytes"] for row in staged),
        reasons={verdict: _some(summary, verdict) for verdict in STOPPING if settled[verdict]},
    )


def _some(summary: Sequence[Summary], verdict: str) -> tuple[str, ...]:
    return some(reason for row in summary if row["verdict"] == verdict for reason in row["reasons"])


def attempt(batches: Batches, login: str, relation: str, number: int) -> Iterator[Summary]:
    """One task attempt: its rows, with all columns but the attempt, in one transaction; then a summary per
    verdict."""
    counted: Counter[tuple[str, bool]] = Counter()
    reasons: dict[str, list[str]] = {verdict: [] for verdict in STOPPING}
    size = removals = 0

    def to_stage() -> Batches:
        nonlocal size, removals
        for batch in batches:
            chosen = _count_and_choose(batch, counted)
            for verdict, found in reasons.items():
                found.extend(_reasons(batch, verdict)[: SHOWN - len(found)])
            size += chosen.nbytes
            removals += _removals(chosen)
            if chosen.num_rows:
                yield chosen.append_column(
                    "attempt", pa.repeat(pa.scalar(number, pa.int64()), chosen.num_rows)
                )

    copy(to_stage(), login, relation)
    for (verdict, staged), count in counted.items():
        yield {
            "attempt": number,
            "verdict": verdict,
            "staged": staged,
            "rows": count,
            "removals": removals if staged else 0,
            "bytes": size if staged else 0,
            "reasons": reasons.get(verdict, []),
        }
        size, removals = (0, 0) if staged else (size, removals)


def _count_and_choose(batch: pa.RecordBatch, counted: Counter[tuple[str, bool]]) -> pa.RecordBatch:
    """The rows of a batch that must be staged; all of them are counted by verdict."""

    verdicts = batch.column(batch.schema.get_field_index("verdict"))
    for entry in pc.value_counts(verdicts).to_pylist():
        counted[(entry["values"], entry["values"] not in SETTLED)] += entry["counts"]
    settled = pc.is_in(verdicts, value_set=pa.array(SETTLED))
    return batch.filter(pc.invert(settled))


def _removals(batch: pa.RecordBatch) -> int:
    """How many rows of a batch are deleted, or have left the filter."""
    gone = pc.or_kleene(batch.column("deleted"), batch.column("out_of_scope"))
    return int(pc.sum(gone).as_py() or 0)


def _reasons(batch: pa.RecordBatch, verdict: str) -> list[str]:
    """Why rows of a batch have a verdict that stops their table."""
    chosen = pc.equal(batch.column(batch.schema.get_field_index("verdict")), verdict)
    return [str(reason) for reason in pc.filter(batch.column("reason"), chosen).to_pylist()]


def copy(batches: Batches, login: str, relation: str) -> None:
    """ADBC's binary COPY, started only when there is a row; committed only when all rows are in."""

    first = next(batches, None)
    if first is None:
        return
    from spark_jobs.adbc_connection import connect  # noqa: PLC0415 - takes a while, and most drivers need none of it

    def rest() -> Batches:
        yield first
        yield from batches

    with connect(login) as connection, connection.cursor() as cursor:
        reader = pa.RecordBatchReader.from_batches(first.schema, rest())
        cursor.adbc_ingest(relation, reader, mode="append", db_schema_name="concord_staging")
        connection.commit()
