"""Custom: somebody else's function decides the conflicts that reach it, batch by batch (S4-048 to S4-053).

    def decide(conflicts: pyarrow.RecordBatch) -> pyarrow.RecordBatch

The batch has one row a conflict:

- `type`;
- `publisher`: `source` or `target`, whose row stands at the publisher; null where the policy has no publisher;
- `source` and `target`: structs of the table's columns, null where the row is deleted;
- `source_version` and `target_version`: structs of `origin`, `changed_at` in µs, `derived`;
- `common`, where the resolver says so: a struct like `source`, the row that both come from; null where it is not known.

The answer has as many rows, in the same order. `decision` is `source`, `target`, `undecided` or `row`. Beside `row`
the column `row`, a struct like `source` under the same key, is the new row. Nothing is locked while it is called:
by executors (`ask`), or by the driver where the target judges the changes (`transmission.ask`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from concord.databases.contract.questions import Answer
from concord.databases.contract.rows import VERSION_TYPES, Shape
from concord.messages.errors import ResolverFailed
from concord.messages.how_many import how_many
from concord.rules.custom_function import function_of, said
from concord.rules.kinds import named
from concord.rules.merging import COMMON, Custom
from concord.rules.resolver import passed
from concord.transmission.verdicts import ASK, FAILED
from spark_jobs.steps.acquire import ARROW_TYPES

#: The column of the new row.
MERGED = "merged"

#: The word of the rest of the chain on the conflicts that the function leaves undecided.
REST = ("verdict", "resolver", "reason")

#: A row's columns, as Arrow takes them.
Values = dict[str, object]

#: Conflicts that a function is shown at once, as by Spark.
AT_ONCE = 10_000

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


def answers(shape: Shape, shown: Sequence[Mapping[str, object]]) -> list[Answer]:
    """The decisions on conflicts that the target has found among staged rows, by a function of this process."""
    layout, schema = Layout.of(shape), _schema(shape)
    found: list[Answer] = []
    for at in range(0, len(shown), AT_ONCE):
        rows = [{**row, **_common(shape, row), "verdict": ASK} for row in shown[at : at + AT_ONCE]]
        batch = answered(pa.RecordBatch.from_pylist(rows, schema), layout)
        columns = (batch.column(name).to_pylist() for name in (*REST, MERGED))
        found += map(Answer._make, zip(*columns, strict=True))
    return found


def _schema(shape: Shape) -> pa.Schema:
    """Of the batches that Spark would bring."""
    columns = dict(zip(shape.aliases, shape.spark_types, strict=True))
    present = {f"p_{alias}": kind for alias, kind in columns.items() if alias not in shape.key_aliases}
    versions = {
        f"{side}{name}": VERSION_TYPES[name] for side in ("", "p_") for name in (*_VERSION, "deleted")
    }
    words = dict.fromkeys(("type", "publisher", *REST, *(f"rest_{name}" for name in REST)), "string")
    every = {**columns, **present, **versions, **words}
    common = [(COMMON, pa.struct(list(row_type(shape.names, shape.spark_types))))]
    told = common if shape.policy.shows_common else []
    return pa.schema([*((name, ARROW_TYPES[kind]) for name, kind in every.items()), *told])


def row_type(names: Sequence[str], spark_types: Sequence[str]) -> Iterator[pa.Field]:
    """The columns of a whole row."""
    for name, kind in zip(names, spark_types, strict=True):
        yield pa.field(name, ARROW_TYPES[kind])


def row_of_texts(names: Sequence[str], spark_types: Sequence[str], row: Mapping[str, str | None]) -> Values:
    """A row of exact texts, as Arrow has it."""
    return {name: _value(kind, row.get(name)) for name, kind in zip(names, spark_types, strict=True)}


def _value(kind: str, text: str | None) -> object:
    if text is None or kind == "string":
        return text
    if kind == "binary":
        return bytes.fromhex(text.removeprefix("\\x"))
    if kind == "boolean":
        return text.startswith("t")
    return float(text) if kind in ("float", "double") else int(text)


def _common(shape: Shape, shown: Mapping[str, object]) -> Values:
    """The row that both come from, where the function is shown it."""
    row = shown.get(COMMON)
    return {COMMON: row_of_texts(shape.names, shape.spark_types, row)} if isinstance(row, dict) else {}


def answered(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
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


def _answers(batch: pa.RecordBatch, name: str, layout: Layout) -> list[Answer]:
    """One function's answers. An error that it raises, or a wrong answer, fails every conflict of the batch."""
    try:
        return list(_called(batch, name, layout))
    except ResolverFailed as error:
        return [Answer(FAILED, name, error.message, None)] * batch.num_rows


def _called(batch: pa.RecordBatch, name: str, layout: Layout) -> Iterator[Answer]:
    conflicts = _conflicts(batch, layout)
    function = function_of(Custom.of(named(name)[1]).entry_point)
    try:
        answer = function(conflicts)
    except (Exception, SystemExit) as error:  # this process is not the function's to end
        raise ResolverFailed(f"{name} failed: {said(error, private=layout.private)}") from error
    decisions, made = _checked(answer, name, conflicts, layout)
    rest = batch.select([f"rest_{column}" for column in REST]).to_pylist()
    for decision, row, other in zip(decisions, made, rest, strict=True):
        if decision == "undecided":
            reason = f"{passed(name, decision)}; {other['rest_reason']}"
            yield Answer(other["rest_verdict"], other["rest_resolver"], reason, None)
        else:
            yield Answer(_VERDICTS[decision], name, _REASONS[decision], row)


def _conflicts(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The columns that a function is shown."""
    versions = [
        pa.StructArray.from_arrays([batch.column(f"{prefix}{field}") for field in _VERSION], list(_VERSION))
        for prefix in ("", "p_")
    ]
    rows = [layout.rows(batch, prefix) for prefix in ("", "p_")]
    names = ["type", "source", "target", "source_version", "target_version", "publisher"]
    columns = [batch.column("type"), *rows, *versions, batch.column("publisher")]
    if COMMON in batch.schema.names:
        names, columns = [*names, COMMON], [*columns, batch.column(COMMON)]
    return pa.RecordBatch.from_arrays(columns, names)


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
        yield json.dumps({column: text_of(value) for column, value in row.items()})


def text_of(value: object) -> str | None:
    """As the database reads it: what does not travel natively is its own text already."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return repr(value)
