"""A table's content, copied anew, as the next versions of its history: equal rows get none, absent ones a delete."""

from __future__ import annotations

from collections.abc import Iterator

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.replay.appended import appending, newest

#: The publisher's rows, for the time of the transaction.
COPIED = "pg_temp.concord_copied"


def create(table: ReplicatedTable) -> str:
    """The statement that makes it."""
    columns = ", ".join(f"{column.sql} {column.type.sql}" for column in table.columns)
    return f"CREATE TEMPORARY TABLE concord_copied ({columns}) ON COMMIT DROP"


def versions(table: ReplicatedTable, level: int) -> Iterator[str]:
    """The statements that append them. `level`: the copy's. Its time stands for that of a commit."""
    assert table.history is not None
    version = quote(table.history.version)
    same = " AND ".join(f"t.{each.sql} = c.{each.sql}" for each in table.key_columns)
    rows = {alias: {each.name: f"{alias}.{each.sql}" for each in table.columns} for alias in "ct"}
    alike = "record_image_eq(ROW({}), ROW({}))".format(*(", ".join(rows[alias].values()) for alias in "ct"))
    new = f"(t.{version} IS NULL OR t.operation = 'D')"
    how = (f"CASE WHEN {new} THEN 'I' ELSE 'U' END", "now()", str(level))
    yield (
        f"{appending(table, rows['c'], f'coalesce(t.{version}, 0) + 1', how)}"
        f" FROM {COPIED} c LEFT JOIN ({newest(table)}) t ON {same} WHERE {new} OR NOT {alike}"
    )
    gone = (literal("D"), "now()", str(level))
    yield (
        f"{appending(table, rows['t'], f't.{version} + 1', gone)} FROM ({newest(table)}) t"
        f" WHERE t.operation <> 'D' AND NOT EXISTS (SELECT FROM {COPIED} c WHERE {same})"
    )
