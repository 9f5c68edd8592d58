"""Functions that custom resolvers name: some decide, some fail."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def by_title(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Does as the source's title says; `both` makes a new row."""
    sides = zip(conflicts.column("source").to_pylist(), conflicts.column("target").to_pylist(), strict=True)
    decisions, rows = [], []
    for ours, theirs in sides:
        both = ours["title"] == "both"
        decisions.append("row" if both else ours["title"])
        title = f"{ours['title']} and {theirs['title']}" if both else ""
        rows.append({**ours, "title": title, "price": "12.50"} if both else None)
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made], ["decision", "row"])


def adds_seats(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Each site has sold or got back some of the 100 seats of `STOCK`; where neither has, it has no opinion."""
    sides = zip(conflicts.column("source").to_pylist(), conflicts.column("target").to_pylist(), strict=True)
    rows = [{**ours, "seats": ours["seats"] + theirs["seats"] - 100} for ours, theirs in sides]
    decisions = ["undecided" if row["seats"] == 100 else "row" for row in rows]
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made], ["decision", "row"])


def publishers_row(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """The first sample (S4-057): code 3, whatever the rows hold."""
    return pa.RecordBatch.from_arrays([conflicts.column("publisher")], ["decision"])


def minimal_price(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """The second sample (S4-058): code 3 for the lower price of the publisher, 1 for that of the subscriber, or 0."""
    decisions = []
    for publisher, subscriber, ours, theirs in _published(conflicts):
        lower = float(ours["price"]) - float(theirs["price"])
        decisions.append(publisher if lower < 0 else subscriber if lower > 0 else "undecided")
    return pa.RecordBatch.from_pydict({"decision": decisions})


def change_to_minimum(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """The third sample (S4-059): code 2, the subscriber's row at the publisher's lower price, or else 1."""
    decisions, rows = [], []
    for _, subscriber, ours, theirs in _published(conflicts):
        lower = ours and theirs and float(ours["price"]) < float(theirs["price"])
        decisions.append("row" if lower else subscriber if ours and theirs else "undecided")
        rows.append({**theirs, "price": ours["price"]} if lower else None)
    made = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made], ["decision", "row"])


def _published(conflicts: pa.RecordBatch) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Of each conflict: what the publisher's side and the subscriber's are called, and both rows."""
    for each in conflicts.to_pylist():
        publisher = each["publisher"]
        subscriber = "target" if publisher == "source" else "source"
        yield publisher, subscriber, each[publisher], each[subscriber]


def breaks(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    raise ArithmeticError(f"no idea of {conflicts.num_rows}\nsecond line")


def talks(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["perhaps"] * conflicts.num_rows})


def is_short(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": pa.array([], pa.string())})


def doubles(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    rows = [{**row, "ratio": row["ratio"] * 2} for row in conflicts.column("source").to_pylist()]
    return _rows(pa.array(rows, conflicts.column("source").type))


def moves_keys(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    rows = [{**row, "id": row["id"] + 1} for row in conflicts.column("source").to_pylist()]
    return _rows(pa.array(rows, conflicts.column("source").type))


def forgets_columns(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return _rows(pa.array([{"id": row["id"]} for row in conflicts.column("source").to_pylist()]))


def _rows(rows: pa.StructArray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(["row"] * len(rows)), rows], ["decision", "row"])


def says_row_alone(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"decision": ["row"] * conflicts.num_rows})


def answers_otherwise(conflicts: pa.RecordBatch) -> object:
    return ["source"] * conflicts.num_rows


not_a_function = "text"


def leaves(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    raise SystemExit(f"no more of {conflicts.num_rows}")


def adds_to_common(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Adds both changes to the seats of the row that both come from; its title says that row."""
    decisions, rows = [], []
    for each in conflicts.to_pylist():
        ours, theirs, old = each["source"], each["target"], each["common"]
        decisions.append("row" if ours and theirs and old else "undecided")
        made = ours and theirs and old and ours["seats"] + theirs["seats"] - old["seats"]
        rows.append({**ours, "seats": made, "title": str(sorted(old.items()))} if old and ours else None)
    made_rows = pa.array(rows, conflicts.column("source").type)
    return pa.RecordBatch.from_arrays([pa.array(decisions), made_rows], ["decision", "row"])


def merges_columns(conflicts: pa.RecordBatch) -> pa.RecordBatch:
    """Each column from the site that changed it; one that both changed from the later edit."""
    rows = []
    for each in conflicts.to_pylist():
        ours, theirs, old = each["source"], each["target"], each["common"]
        edited = [each[f"{side}_version"]["changed_at"] for side in ("source", "target")]
        later = ours if edited[0] > edited[1] else theirs
        rows.append(
            {
                name: ours[name]
                if theirs[name] in (old[name], ours[name])
                else theirs[name]
                if ours[name] == old[name]
                else later[name]
                for name in ours
            }
        )
    return _rows(pa.array(rows, conflicts.column("source").type))
