"""Functions that hooks name: they audit, change, refuse or fail."""

from decimal import Decimal
from typing import Any

import pyarrow as pa

#: Batches that they were shown, and acts while they are asked.
shown: list[list[dict[str, Any]]] = []
meanwhile: list[Any] = []


def audits(rows: pa.RecordBatch) -> pa.RecordBatch:
    """For each row one in the audit, with the price before and after."""
    written = [
        [
            {
                "book": (each["incoming"] or each["present"])["id"],
                "operation": each["operation"],
                "old": each["present"] and each["present"]["price"],
                "new": each["incoming"] and each["incoming"]["price"],
            }
        ]
        for each in rows.to_pylist()
    ]
    return pa.RecordBatch.from_pydict({"decision": ["apply"] * len(written), "public.audit": written})


def adds_one(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Never content: the price is one more, whatever it was; rows that go may."""
    made = [
        each["incoming"] and {**each["incoming"], "price": str(Decimal(each["incoming"]["price"]) + 1)}
        for each in rows.to_pylist()
    ]
    decisions = ["apply" if each is None else "change" for each in made]
    return _answer(rows, decisions, made)


def refuses_dear(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Nothing above a hundred."""
    dear = [bool(each["incoming"]) and Decimal(each["incoming"]["price"]) > 100 for each in rows.to_pylist()]
    decisions = ["refuse" if each else "apply" for each in dear]
    reasons = ["too\ndear" if each else None for each in dear]
    return pa.RecordBatch.from_pydict({"decision": decisions, "reason": reasons})


def notes(rows: pa.RecordBatch) -> None:
    """Leaves all as it is, and remembers what it was shown."""
    for act in meanwhile:
        act()
    shown.append(rows.to_pylist())


def breaks(rows: pa.RecordBatch) -> pa.RecordBatch:
    raise ArithmeticError(f"no idea of {rows.to_pylist()[0]['incoming']}")


def leaves(rows: pa.RecordBatch) -> pa.RecordBatch:
    raise SystemExit("no more")


def answers_otherwise(rows: pa.RecordBatch) -> object:
    return ["apply"] * rows.num_rows


def is_short(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": pa.array([], pa.string())})


def talks(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["perhaps"] * rows.num_rows})


def changes_nothing_to(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["change"] * rows.num_rows})


def moves_keys(rows: pa.RecordBatch) -> pa.RecordBatch:
    made = [{**each["incoming"], "id": each["incoming"]["id"] + 1} for each in rows.to_pylist()]
    return _answer(rows, ["change"] * len(made), made)


def changes_types(rows: pa.RecordBatch) -> pa.RecordBatch:
    made = [{**each["incoming"], "id": "one"} for each in rows.to_pylist()]
    decisions = pa.array(["change"] * len(made))
    return pa.RecordBatch.from_arrays([decisions, pa.array(made)], ["decision", "row"])


def adds_elsewhere(rows: pa.RecordBatch) -> pa.RecordBatch:
    decisions = ["apply"] * rows.num_rows
    return pa.RecordBatch.from_pydict({"decision": decisions, "public.other": [[{"id": 1}]] * rows.num_rows})


def adds_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    decisions = ["apply"] * rows.num_rows
    return pa.RecordBatch.from_pydict(
        {"decision": decisions, "public.audit": [[{"secret": 1}]] * rows.num_rows}
    )


def adds_what_is_refused(rows: pa.RecordBatch) -> pa.RecordBatch:
    decisions = ["apply"] * rows.num_rows
    wrong = [[{"book": "none", "operation": "x"}]] * rows.num_rows
    return pa.RecordBatch.from_pydict({"decision": decisions, "public.audit": wrong})


not_a_function = "text"


def _answer(rows: pa.RecordBatch, decisions: list[str], made: list[Any]) -> pa.RecordBatch:
    kind = rows.column("incoming").type
    return pa.RecordBatch.from_arrays([pa.array(decisions), pa.array(made, kind)], ["decision", "row"])
