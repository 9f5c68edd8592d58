"""Hook: somebody else's function sees every row before it is written, batch by batch (S2-24, S2-25, S3-08, S3-13).

    def applied(rows: pyarrow.RecordBatch) -> pyarrow.RecordBatch | None

The batch has one row for each that is about to be written:

- `operation`: `insert`, `update` or `delete`, by what is there;
- `incoming`: a struct of the table's columns, null where the row goes;
- `present`: likewise, as it is there under lock; null where there is none;
- `previous`: likewise, the row that both come from or was there before, where it is kept;
- `origin`, `changed_at` in µs: of the row's version; null in a replication;
- `changeable`: false where another hook has made the row, which stays what it is.

None leaves all rows as they are. An answer has as many rows, in the same order: `decision` is `apply`, `change` or
`refuse`. Beside `change` the column `row` is a struct like `incoming` under the same key. Beside `refuse` a
column `reason` may say why. For each table that the configuration lets it add to, a column of that name may hold a
list of structs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal

import pyarrow as pa

from concord.messages.errors import HookFailed
from concord.messages.how_many import how_many
from concord.rules.custom_function import said
from concord.rules.hook_function import AboutToBeWritten, Hooked, Texts, Verdict, Word, function_of
from spark_jobs.steps.custom import row_of_texts, row_type, text_of

_AS_IT_IS = Word(Verdict.APPLY, None, "", {})


def ask_hook(hooked: Hooked, rows: Sequence[AboutToBeWritten]) -> Sequence[Word]:
    """Its words on these rows. Raises HookFailed where it fails, or says what nobody can do."""
    function, shown = function_of(hooked.hook.call, hooked.told), _batch(hooked, rows)
    try:
        answer = function(shown)
    except (Exception, SystemExit) as error:  # this process is not the hook's to end
        why = said(error, private=hooked.private)
        raise HookFailed(f"{hooked.told} failed: {why}; nothing was written") from error
    if answer is None:
        return [_AS_IT_IS] * len(rows)
    return _checked(hooked, shown, answer)


def _batch(hooked: Hooked, rows: Sequence[AboutToBeWritten]) -> pa.RecordBatch:
    of_rows = pa.struct(list(row_type(hooked.names, hooked.spark_types)))
    kinds = {
        "operation": pa.string(),
        **dict.fromkeys(("incoming", "present", "previous"), of_rows),
        "origin": pa.string(),
        "changed_at": pa.int64(),
        "changeable": pa.bool_(),
    }
    columns = zip(*(_shown(hooked, row) for row in rows), strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(kinds))


def _shown(hooked: Hooked, row: AboutToBeWritten) -> tuple[object, ...]:
    def shown(texts: Texts | None) -> object:
        return None if texts is None else row_of_texts(hooked.names, hooked.spark_types, texts)

    sides = (shown(texts) for texts in (row.incoming, row.present, row.previous))
    return (row.operation, *sides, row.origin, row.changed_at, row.changeable)


def _checked(hooked: Hooked, shown: pa.RecordBatch, answer: object) -> list[Word]:
    if not isinstance(answer, pa.RecordBatch) or "decision" not in answer.schema.names:
        raise HookFailed(f"{hooked.told} must return None, or a pyarrow.RecordBatch with a column decision")
    if answer.num_rows != shown.num_rows:
        wrong = f"{how_many(answer.num_rows, 'decision')} on {how_many(shown.num_rows, 'row')}"
        raise HookFailed(f"{hooked.told} returned {wrong}; nothing was written")
    may_add = {added.name for added in hooked.hook.adds}
    if unknown := set(answer.schema.names) - {"decision", "row", "reason", *may_add}:
        listed = ", ".join(sorted(unknown))
        raise HookFailed(
            f"{hooked.told} returned the columns {listed}; name under its `adds` a table to which it adds rows"
        )
    every = answer.to_pylist()
    sides = (shown.column(name).to_pylist() for name in ("incoming", "changeable"))
    return [_word(hooked, *each) for each in zip(every, *sides, strict=True)]


def _word(
    hooked: Hooked, said_of_it: Mapping[str, object], incoming: Mapping[str, object] | None, changeable: bool
) -> Word:
    try:
        verdict = Verdict(str(said_of_it["decision"]))
    except ValueError:
        raise HookFailed(f"{hooked.told} may say apply, change or refuse; nothing was written") from None
    reason = "" if hooked.private else " ".join(str(said_of_it.get("reason") or "").split())[:200]
    row = _changed(hooked, said_of_it.get("row"), incoming) if verdict is Verdict.CHANGE else None
    if row is not None and not changeable:
        verdict, row = Verdict.APPLY, None
    added = {} if verdict is Verdict.REFUSE else dict(_added(hooked, said_of_it))
    return Word(verdict, row, reason, added)


def _changed(hooked: Hooked, row: object, incoming: Mapping[str, object] | None) -> Texts:
    """The new content in the types of the table, under the same key. Raises HookFailed."""
    if not hooked.may_change:
        raise HookFailed(
            f"{hooked.told} may not change a row where both sites write: the other one would not hear of it"
        )
    if incoming is None:
        raise HookFailed(f"{hooked.told} makes another row of one that goes; it may only refuse that")
    if not isinstance(row, dict) or row.keys() != set(hooked.names):
        listed = ", ".join(hooked.names)
        raise HookFailed(f"{hooked.told} must return, beside change, a whole row: {listed}")
    of_rows = pa.struct(list(row_type(hooked.names, hooked.spark_types)))
    try:
        [made] = pa.array([row], of_rows).to_pylist()
    except (pa.ArrowException, ValueError, TypeError) as error:
        why = said(error, private=hooked.private)
        raise HookFailed(f"{hooked.told} returned a row of other types: {why}") from error
    if any(made[column] != incoming[column] for column in hooked.key):
        raise HookFailed(f"{hooked.told} returned a row of another key; the key must stay")
    return {name: text_of(value) for name, value in made.items()}


def _added(hooked: Hooked, answer: Mapping[str, object]) -> Iterator[tuple[str, Sequence[Texts]]]:
    """Rows for other tables. Raises HookFailed."""
    for table in hooked.hook.adds:
        rows = answer.get(table.name) or []
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise HookFailed(f"{hooked.told} must return in the column {table.name} lists of rows")
        if unknown := {name for row in rows for name in row} - set(table.columns):
            raise HookFailed(
                f"{hooked.told} gives {table.name} the columns {', '.join(sorted(unknown))}; name them under `adds`"
            )
        if rows:
            yield table.name, [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: object) -> str | None:
    """Of any type that Arrow has: as the database reads it."""
    if isinstance(value, Decimal | date | time | timedelta):
        return str(value)
    return json.dumps(value, default=str) if isinstance(value, dict | list) else text_of(value)
