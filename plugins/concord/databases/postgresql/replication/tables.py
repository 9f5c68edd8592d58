"""The tables of a replication as both ends have them: what cannot be replayed is refused before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.entries.staging import Layout
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.log.published import Kind, Published, PublishedTable
from concord.databases.postgresql.queued import version_tables
from concord.databases.postgresql.replication.way import Way
from concord.databases.postgresql.rows import row_filter
from concord.databases.postgresql.sites import preflight
from concord.jobs.kept_history import KeptHistory
from concord.messages.errors import StructureChanged
from concord.tables.replication_set import ReplicatedTable, TableName

#: The advice where the subscriber was altered before the log was read.
_AS_LOGGED = (
    " (operations from before the publisher's table was altered wait: give the table the columns of that time here"
    " until a run has replayed them, or initialize again with `replace`)"
)


def published_tables(
    site: str,
    wanted: Sequence[ReplicatedTable],
    tables: Mapping[TableName, Table],
    *,
    compared: Callable[[ReplicatedTable], bool],
    whole: Collection[int] = (),
) -> tuple[PublishedTable, ...]:
    """Raises StructureChanged where one is missing, or has no key.

    `compared`: of which the row before an operation is replayed, too. `whole`: those of which the log brings rows as
    they were in any case.
    """
    found = [(each, _existing(site, each, tables)) for each in wanted]
    return tuple(
        published_table(site, each, table, images=compared(each), shared=table.oid in whole)
        for each, table in found
    )


def published_table(
    site: str, wanted: ReplicatedTable, table: Table, *, images: bool, shared: bool = False
) -> PublishedTable:
    """One that exists, and has a key. Raises StructureChanged where its filter has no such columns."""
    listed = wanted.columns_at(site)
    made = PublishedTable(
        wanted.name,
        table,
        table.key_of(wanted.key_at(site)),
        images,
        None if listed is None else frozenset(listed),
        shared=shared,
        joined=wanted.joins_values_of(site),
    )
    if wanted.where is None:
        return made
    if wrong := list(filter_problems(site, wanted, table)):
        raise StructureChanged("; ".join(f"{site}: {table.name} {line}" for line in wrong))
    held = row_filter.condition(wanted.where, _filtered(site, wanted, table), quote(table.name.name))
    return replace(made, where=held)


def column_problems(site: str, wanted: ReplicatedTable, table: Table) -> Iterator[str]:
    """Columns that the replication set chooses or maps, and the table does not have, or not so; each one line."""
    manipulation, known = wanted.manipulation_at(site), {column.name: column for column in table.sent}
    mapped = [name for each in manipulation.operations for name in each.own]
    for name in dict.fromkeys([*(wanted.columns_at(site) or ()), *mapped]):
        if name not in known:
            yield f"has no column {name} that travels; correct `columns` or `mappings`"
    key = table.key_of(wanted.key_at(site))
    for each in manipulation.operations:
        for name in each.own:
            if name in known:
                yield from preflight.mapped_column_problems(key, each, known[name])


def filter_problems(site: str, wanted: ReplicatedTable, table: Table) -> Iterator[str]:
    """Why the publication cannot filter the table's rows, each one line."""
    if wanted.where is None:
        return
    found = _filtered(site, wanted, table)
    yield from row_filter.problems(wanted.where, found)
    for name in wanted.where.columns:
        column = found(name)
        if column is not None and column.type.kind != "b":
            yield (
                f"filters by {name} of type {column.type.sql}, which is no type of PostgreSQL's own; its publications"
                " compare no others"
            )


def _filtered(site: str, wanted: ReplicatedTable, table: Table) -> Callable[[str], Column | None]:
    listed = wanted.columns_at(site)

    def column(name: str) -> Column | None:
        own = wanted.manipulation_at(site).own_names((name,))
        return next(
            (c for c in table.sent if (c.name,) == own and (listed is None or c.name in listed)), None
        )

    return column


def layout(
    site: str,
    publisher: str,
    wanted: Sequence[ReplicatedTable],
    tables: Mapping[TableName, Table],
    published: Published,
    histories: Mapping[str, KeptHistory],
) -> Layout:
    """The subscriber's tables in the publisher's order of columns. Raises StructureChanged where they differ.

    A column that one site alone has by now may wait in the log.
    """
    found = [_existing(site, each, tables) for each in wanted]
    sources = published.tables[: len(wanted)]
    ways = [
        Way(*each, publisher, site, histories.get(each[1].name))
        for each in zip(wanted, sources, found, strict=True)
    ]
    ruled = [f"{table.name} {line}" for table in found for line in preflight.rule_problems(table)]
    if wrong := ruled + [
        f"{line}{_AS_LOGGED if way.source.altered else ''}" for way in ways for line in way.problems()
    ]:
        raise StructureChanged("; ".join(f"{site}: {line}" for line in wrong))
    of_rows = tuple(way.table_at(place) for place, way in enumerate(ways))
    return Layout(published, version_tables.subscribed(site, of_rows, published, tables))


def followed(layout: Layout) -> dict[str, str]:
    """By a table's identity at the publisher and its name here its name: another one was never copied into it.

    Nor was one copied whose operations were not captured for a while.
    """
    published = layout.published
    found = {
        f"{published.identity(published.tables[each.place].table)} {each.table.name}": each.name
        for each in layout.of(Kind.ROWS)
    }
    return found | {each: each for each in published.interrupted_own}


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
