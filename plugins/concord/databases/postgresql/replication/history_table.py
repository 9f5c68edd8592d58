"""The table that keeps every version of a replicated table's rows: its columns and its key (S0-49)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concord.databases.postgresql.facts.catalogue import Table
from concord.jobs.kept_history import COMMITTED_AT, ENTRY, OPERATION, KeptHistory


def types(history: KeptHistory) -> dict[str, str]:
    """Of its own columns, as SQL."""
    return {
        history.version: "bigint",
        OPERATION: "text",
        COMMITTED_AT: "timestamp with time zone",
        ENTRY: "bigint",
    }


def own_problems(table: Table, history: KeptHistory) -> Iterator[str]:
    """Why it counts no versions, whatever the publisher's table is; each one line."""
    found = {column.name: column for column in table.sent}
    for name, kind in types(history).items():
        if name not in found:
            yield f"{table.name} lacks the column {name} of a history; add it as {kind}"
        elif found[name].type.sql != kind:
            yield f"{table.name}.{name} is {found[name].type.sql}, and a history has it as {kind}; change its type"
    if found.keys() >= {history.version} and history.version not in table.primary_key:
        yield (
            f"{table.name} has no primary key with {history.version} in it; make it the table's key and"
            f" {history.version}"
        )
    if others := [name for name in table.primary_key if name in types(history) and name != history.version]:
        told = f"make it the table's key and {history.version} alone"
        yield f"{table.name} has {', '.join(others)} in its primary key; {told}"


def problems(table: Table, key: Sequence[str], history: KeptHistory) -> Iterator[str]:
    """Why it cannot keep versions of rows with this key, each one line."""
    yield from own_problems(table, history)
    wanted = {*key, history.version}
    if set(table.primary_key) != wanted:
        told = ", ".join((*key, history.version))
        yield f"{table.name} needs the primary key ({told}), in which each version is one row"
    for unique in table.unique_keys:
        if set(unique) != wanted:
            yield (
                f"{table.name} has a unique index on ({', '.join(unique)}), which another version of a row breaks; drop"
                " it"
            )
