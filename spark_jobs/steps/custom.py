"""Custom: somebody else's function decides the conflicts that reach it, batch by batch (S4-048 to S4-053).

    def decide(conflicts: pyarrow.RecordBatch) -> pyarrow.RecordBatch

The batch has one row a conflict:

- `type`;
- `source` and `target`: structs of the table's columns, null where the row is deleted;
- `source_version` and `target_version`: structs of `origin`, `changed_at` in µs, `derived`.

The answer has as many rows, in the same order. `decision` is `source`, `target`, `undecided` or `row`. Beside `row`
the column `row`, a struct like `source` under the same key, is the new row. Executors call the function, and never
while anything is locked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructType

from concord.databases.contract.rows import Shape
from concord.messages.errors import ResolverFailed
from concord.messages.how_many import how_many
from concord.rules.custom_function import function_of, said
from concord.rules.kinds import named
from concord.rules.merging import Custom
from concord.rules.resolver import passed
from concord.transmission.verdicts import ASK, FAILED
from spark_jobs.code_state import in_this_code

#: The column of the new row.
MERGED = "merged"

#: The word of the rest of the chain on the conflicts that the function leaves undecided.
REST = ("verdict", "resolver", "reason")

_VERDICTS = {"source": "source_wins", "target": "target_wins", "row": "merged"}
_VERSION = ("origin", "changed_at", "derived")
_REASONS = {"source": "took the source's row", "target": "took the target's row", "row": "made a new row"}


@dataclass(frozen=True)
class Layout:
    """The table's columns, what they are called on the way, and which of them both sides share: the key."""

    names: tuple[str, ...]
    aliases: tuple[str, ...]
    key: tuple[str, ...]
    private: bool = False  #: no message repeats what the function says

    @classmethod
    def of(cls, shape: Shape) -> Layout:
        return cls(shape.names, shape.aliases, shape.key_aliases, bool(shape.private))

    def rows(self, batch: pa.RecordBatch, prefix: str = "") -> pa.StructArray:
        """The rows of one side as structs; null where the row is deleted."""
        names = [alias if alias in self.key else f"{prefix}{alias}" for alias in self.aliases]
        deleted = batch.column(f"{prefix}deleted")
        return pa.StructArray.from_arrays(
            [batch.column(name) for name in names], list(self.names), mask=deleted
        )


def ask(decided: DataFrame, layout: Layout) -> DataFrame:
    """Every row whose verdict is ASK gets that of the function that `resolver` names, or of the rest of its chain.
    Adds `merged`: the new row as JSON, each value as the text that the database reads."""
    rest = [f"rest_{name}" for name in REST]
    fields = [field for field in decided.schema.fields if field.name not in rest]
    schema = StructType(fields).add(MERGED, StringType())

    def answered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _answered(batch, layout).select(schema.names)

    return decided.mapInArrow(in_this_code(answered), schema)


def _answered(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The batch with the answers in the place of ASK."""
    columns = {name: batch.column(name).to_pylist() for name in REST}
    columns[MERGED] = [None] * batch.num_rows
    asked = [place for place, verdict in enumerate(columns["verdict"]) if verdict == ASK]
    for name in sorted({columns["resolver"][place] for place in asked}):
        places = [place for place in asked if columns["resolver"][place] == name]
        for place, answer in zip(places, _answers(batch.take(pa.array(places)), name, layout), strict=True):
            for column, value in zip((*REST, MERGED), answer, strict=True):
                columns[column][place] = value
    for name, values in columns.items():
        made = pa.array(values, pa.string())
        known = batch.schema.get_field_index(name)
        batch = batch.append_column(name, made) if known < 0 else batch.set_column(known, name, made)
    return batch


Answer = tuple[str, str | None, str | None, str | None]  #: verdict, resolver, reason, new row


def _answers(batch: pa.RecordBatch, name: str, layout: Layout) -> list[Answer]:
    """One function's answers. An error that it raises, or a wrong answer, fails every conflict of the batch."""
    try:
        return list(_called(batch, name, layout))
    except ResolverFailed as error:
        return [(FAILED, name, error.message, None)] * batch.num_rows


def _called(batch: pa.RecordBatch, name: str, layout: Layout) -> Iterator[Answer]:
    conflicts = _conflicts(batch, layout)
    function = function_of(Custom.of(named(name)[1]).entry_point)
    try:
        answer = function(conflicts)
    except Exception as error:
        raise ResolverFailed(f"{name} failed: {said(error, private=layout.private)}") from error
    decisions, made = _checked(answer, name, conflicts, layout)
    rest = batch.select([f"rest_{column}" for column in REST]).to_pylist()
    for decision, row, other in zip(decisions, made, rest, strict=True):
        if decision == "undecided":
            reason = f"{passed(name, decision)}; {other['rest_reason']}"
            yield other["rest_verdict"], other["rest_resolver"], reason, None
        else:
            yield _VERDICTS[decision], name, _REASONS[decision], row


def _conflicts(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The columns that a function is shown."""
    versions = [
        pa.StructArray.from_arrays([batch.column(f"{prefix}{field}") for field in _VERSION], list(_VERSION))
        for prefix in ("", "p_")
    ]
    rows = [layout.rows(batch, prefix) for prefix in ("", "p_")]
    names = ["type", "source", "target", "source_version", "target_version"]
    return pa.RecordBatch.from_arrays([batch.column("type"), *rows, *versions], names)


def _checked(
    answer: object, name: str, conflicts: pa.RecordBatch, layout: Layout
) -> tuple[list[str], list[str | None]]:
    """The decisions, and beside `row` the new row as JSON. Raises ResolverFailed."""
    if not isinstance(answer, pa.RecordBatch) or "decision" not in answer.schema.names:
        raise ResolverFailed(f"{name} must return a pyarrow.RecordBatch with a column decision")
    if answer.num_rows != conflicts.num_rows:
        raise ResolverFailed(
            f"{name} returned {how_many(answer.num_rows, 'decision')} on {how_many(conflicts.num_rows, 'conflict')}"
        )
    decisions = answer.column("decision").to_pylist()
    if wrong := sorted({str(each) for each in decisions} - {*_VERDICTS, "undecided"}):
        answers = "something else" if layout.private else ", ".join(wrong[:3])
        raise ResolverFailed(f"{name} said {answers}; it may say source, target, undecided or row")
    if "row" not in decisions:
        return decisions, [None] * len(decisions)
    if "row" not in answer.schema.names:
        raise ResolverFailed(f"{name} said row and returned no column row")
    return decisions, list(_made(answer, name, conflicts, layout))


def _made(
    answer: pa.RecordBatch, name: str, conflicts: pa.RecordBatch, layout: Layout
) -> Iterator[str | None]:
    """The new rows, in the types of the table. Raises ResolverFailed."""
    kind = answer.column("row").type
    if not pa.types.is_struct(kind) or {field.name for field in kind} != set(layout.names):
        raise ResolverFailed(f"{name} returned rows of other columns; they must be {', '.join(layout.names)}")
    try:
        rows = answer.column("row").cast(conflicts.column("source").type).to_pylist()
    except (pa.ArrowException, ValueError) as error:
        why = said(error, private=layout.private)
        raise ResolverFailed(f"{name} returned rows of other types: {why}") from error
    key = [column for column, alias in zip(layout.names, layout.aliases, strict=True) if alias in layout.key]
    sides = zip(conflicts.column("source").to_pylist(), conflicts.column("target").to_pylist(), strict=True)
    for decision, row, (ours, theirs) in zip(answer.column("decision").to_pylist(), rows, sides, strict=True):
        if decision != "row":
            yield None
            continue
        known = ours or theirs or {}
        if row is None or any(row[column] != known[column] for column in key):
            raise ResolverFailed(f"{name} returned no row, or one of another key; the key must stay")
        yield json.dumps({column: _text(value) for column, value in row.items()})


def _text(value: object) -> str | None:
    """As the database reads it: what does not travel natively is its own text already."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return repr(value)
