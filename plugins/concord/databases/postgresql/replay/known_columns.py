"""The publisher's columns as a subscriber knows them: some statements change values, and no log brings that.

A column that is dropped and added again keeps its name alone. `ALTER COLUMN … TYPE … USING` may give the rows other
values of the same type, and `ADD COLUMN … DEFAULT` may give them a value each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import Layout, ReplicatedTable
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.log.published import Kind, PublishedTable
from concord.databases.postgresql.replay.level import Level
from concord.messages.errors import HistoryLost

#: By table: its file, and its columns by their places.
Known = dict[str, Any]


def known_columns(layout: Layout, before: Mapping[str, Any] | None = None) -> Known:
    """As the publisher has them now. Of a table that the log has otherwise they stay as they were `before`."""
    found: Known = {}
    for each, source in _tables(layout):
        if not source.altered:
            found[each.name] = _described(source)
        elif before and each.name in before:
            found[each.name] = before[each.name]
    return found


def refuse_unlogged(connection: Connection, level: Level, layout: Layout) -> None:
    """Raises HistoryLost where values of a table were changed and the log does not have it; else know the columns."""
    before = columns_before(connection, level)
    now = known_columns(layout, before)
    for each, source in _tables(layout):
        known = (before or {}).get(each.name)
        if known is not None and not source.altered:
            for column, why in _changes(known, now[each.name], each, source):
                raise HistoryLost(
                    f"{level.site}: {each.name}: {level.publisher}'s log does not have all values of its column"
                    f" {column}: {why}; {level.remedy([each.name])}"
                )
    if now != before:
        level.change(connection, f"columns = {literal(json.dumps(now))}")


def columns_before(connection: Connection, level: Level) -> Known | None:
    """As the last run has found them; None: nobody has taken them down yet."""
    [(before,)] = rows(connection, f"SELECT columns FROM concord.replay WHERE {level.mine}")
    return before  # type: ignore[no-any-return]


def _tables(layout: Layout) -> Iterator[tuple[ReplicatedTable, PublishedTable]]:
    for each in layout.of(Kind.ROWS):
        yield each, layout.published.tables[each.place]


def _described(source: PublishedTable) -> dict[str, Any]:
    columns = {
        str(each.place): {
            "name": each.name,
            "type": f"{each.type_oid} {each.type.descriptor}",
            "version": each.version,
            "default": each.default_oid,
            "filled": each.filled is not None,
        }
        for each in source.columns
    }
    return {"storage": source.table.storage, "columns": columns}


def _changes(
    known: Mapping[str, Any], now: Mapping[str, Any], table: ReplicatedTable, source: PublishedTable
) -> Iterator[tuple[str, str]]:
    """Columns of which values changed, each with the reason."""
    places = {column["name"]: place for place, column in known["columns"].items()}
    rewritten = known["storage"] != now["storage"]
    for place, column in now["columns"].items():
        before, name = known["columns"].get(place), column["name"]
        if places.get(name, place) != place:
            yield name, "it was dropped and added again, or another one was renamed to it"
        elif before is None and rewritten:
            yield name, "its rows were written again when it was added, or since"
        elif before is None and _filled_otherwise(name, source, table):
            yield name, "rows that were there when it was added got another value than they did here"
        elif before is not None and rewritten and _is_altered(before, column):
            yield name, "it was altered and the table written again, as by ALTER COLUMN … TYPE … USING"


def _is_altered(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Of a table that was written again. Another type stops the run where the log has it.

    VACUUM FULL writes the value that older rows had, without altering the column: its default is the same.
    """
    written = before["filled"] and not now["filled"] and before["default"] == now["default"] != 0
    return before["type"] == now["type"] and before["version"] != now["version"] and not written


def _filled_otherwise(name: str, source: PublishedTable, table: ReplicatedTable) -> bool:
    """Have older rows another value here? A mapped column has none to compare."""
    if table.mapping is not None:
        return False
    at = [column.name for column in source.columns].index(name)
    return source.columns[at].filled != table.columns[at].filled
