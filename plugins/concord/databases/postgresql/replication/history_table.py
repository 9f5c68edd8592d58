"""The table that keeps every version of a replicated table's rows: its columns and its key (S0-49)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.types import ColumnType
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


def problems(
    table: Table, sent: Mapping[str, ColumnType | None], key: Sequence[str], history: KeptHistory
) -> Iterator[str]:
    """Why versions of the publisher's rows do not fit into it, each one line.

    `sent`: by their names here, the publisher's types of values that stay as they are.
    """
    own, kept = types(history), {column.name: column for column in table.sent}
    if clash := sorted(own.keys() & sent.keys()):
        yield (
            f"the publisher's table has a column {clash[0]}, which a history has of its own; rename it by a mapping of"
            " this site, or the history's `version`"
        )
        return
    yield from own_problems(table, history)
    for name, kind in sorted(sent.items()):
        if name not in kept:
            wanted_type = "" if kind is None else f" as {kind.sql}"
            yield f"{table.name} lacks the publisher's column {name}; add it to the history{wanted_type}"
        elif kind is not None and kept[name].type.descriptor != kind.descriptor:
            yield (
                f"{table.name}.{name} is of another type than at the publisher ({kept[name].type.descriptor},"
                f" {kind.descriptor})"
            )
    for name in sorted(kept.keys() - sent.keys() - own.keys()):
        if kept[name].must_be_given:
            yield f"{table.name}.{name} has no default, and the publisher has no such column; give it one"
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
