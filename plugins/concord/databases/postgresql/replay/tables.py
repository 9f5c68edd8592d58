"""The tables of a replication as both ends have them: what cannot be replayed is refused before anything is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.log.published import Published, PublishedTable
from concord.databases.postgresql.replay import staging
from concord.databases.postgresql.replay.staging import Layout
from concord.messages.errors import StructureChanged
from concord.tables.replication_set import ReplicatedTable, TableName


def published_tables(
    site: str, wanted: Sequence[ReplicatedTable], tables: Mapping[TableName, Table], *, images: bool
) -> tuple[PublishedTable, ...]:
    """Raises StructureChanged where one is missing, or has no key."""
    return tuple(
        PublishedTable(each.name, table, table.key_of(each.key_at(site)), images)
        for each in wanted
        for table in [_existing(site, each, tables)]
    )


def layout(
    site: str, wanted: Sequence[ReplicatedTable], tables: Mapping[TableName, Table], published: Published
) -> Layout:
    """The subscriber's tables in the publisher's order of columns. Raises StructureChanged where they differ."""
    found = [_existing(site, each, tables) for each in wanted]
    if wrong := [
        line
        for table, source in zip(found, published.tables, strict=True)
        for line in problems(table, source)
    ]:
        raise StructureChanged("; ".join(f"{site}: {line}" for line in wrong))
    return Layout(
        published,
        tuple(
            staging.ReplicatedTable(
                source.name,
                place,
                table,
                tuple(table.column(c.name) for c in source.columns),
                source.key,
                source.before,
            )
            for place, (table, source) in enumerate(zip(found, published.tables, strict=True))
        ),
    )


def problems(table: Table, source: PublishedTable) -> Iterator[str]:
    """Why rows of the publisher's table do not fit into the subscriber's, each one line."""
    sent = {column.name: column.type.descriptor for column in source.columns}
    kept = {column.name: column.type.descriptor for column in table.sent}
    for name in sorted(sent.keys() | kept.keys()):
        if name not in kept:
            yield f"{table.name} lacks the publisher's column {name}; add it"
        elif name not in sent:
            column = table.column(name)
            if column.must_be_given:
                yield f"{table.name}.{name} has no default, and the publisher has no such column; give it one"
        elif sent[name] != kept[name]:
            yield f"{table.name}.{name} is of another type than at the publisher ({kept[name]}, {sent[name]})"
    if set(source.key) not in [{*table.primary_key}, *({*key} for key in table.unique_keys)]:
        yield f"{table.name} has no unique index on its replication key ({', '.join(source.key)})"


def _existing(site: str, wanted: ReplicatedTable, tables: Mapping[TableName, Table]) -> Table:
    table = tables.get(wanted.at_site(site))
    if table is None:
        raise StructureChanged(
            f"{site}: {wanted.at_site(site)} does not exist; create it and run `provision`"
        )
    if not table.key_of(wanted.key_at(site)):
        raise StructureChanged(
            f"{site}: {table.name} has no primary key; name its `key` in the replication set"
        )
    return table
