"""Refuse rather than guess: what makes a table, or a pair of sites, unfit to be replicated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import psycopg

from concord.configuration.field import did_you_mean
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.types import descriptor_of
from concord.databases.postgresql.rows import merging_problems, row_filter
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.sites.site_facts import SiteFacts
from concord.tables.manipulation import Cast, Manipulation, Operation, Rename
from concord.tables.replication_set import ReplicatedTable, TableName

#: PostgreSQL allows 1600 columns; staging adds its own beside them (F88).
MOST_COLUMNS = 1500


def site_problems(facts: SiteFacts) -> Iterator[str]:
    """The facts that make a whole database unfit to be a site."""
    if facts.version < 150000:
        yield f"{facts.site}: PostgreSQL {facts.version // 10000} is too old; Concord needs 15 or later"
    if facts.in_recovery:
        yield f"{facts.site}: is a standby; connect to its primary"
    if facts.provisioned_as not in (None, facts.site):
        yield (
            f"{facts.site}: the database is already the site '{facts.provisioned_as}';"
            " correct the connection, or remove that site first"
        )


def table_problems(site: str, wanted: ReplicatedTable, table: Table | None) -> Iterator[str]:
    """Everything about one table at one site that Concord cannot replicate exactly."""
    where = f"{site}: {wanted.at_site(site)}"
    if table is None:
        yield f"{where} does not exist, or the installer may not see it; create it or correct its name"
        return
    yield from (f"{where} {problem}" for problem in kind_problems(table))
    shadow = Shadow.of(wanted, site, table)
    yield from (f"{where} {problem}" for problem in _key_problems(table, wanted.key_at(site)))
    yield from (f"{where} {problem}" for problem in _column_problems(shadow))
    yield from (f"{where} {problem}" for problem in _listed_problems(shadow))
    yield from (f"{where} {problem}" for problem in _mapping_problems(shadow, wanted.manipulation_at(site)))
    shape = shape_of(wanted, site, table)
    yield from (f"{where} {problem}" for problem in _filter_problems(wanted, shape))
    yield from (f"{where} {problem}" for problem in policy_problems(shape))
    yield from (f"{where} {problem}" for problem in merging_problems.problems(shape))


def kind_problems(table: Table) -> Iterator[str]:
    """The facts that make a table unfit to be written, each to be read after its name."""
    if table.kind != "r" or table.inherits:
        yield "is not a plain table (a view, partition, partitioned or inheriting table); replicate plain tables"
    if table.persistence != "p":
        yield "is unlogged or temporary: a crash empties it; ALTER TABLE … SET LOGGED first"
    if table.row_security:
        yield "has row-level security, which can hide rows from Concord and read as a mass delete; disable it"
    if len(table.columns) > MOST_COLUMNS:
        yield f"has {len(table.columns)} columns; Concord takes at most {MOST_COLUMNS}"
    yield from rule_problems(table)
    for name in table.exclusions_deferrable:
        yield f"has the deferrable exclusion constraint {name}; make it NOT DEFERRABLE"
    for name in table.temporal_keys:
        yield f"has the foreign key {name} with PERIOD, or is referred to by it, which Concord cannot check; drop it"


def rule_problems(table: Table) -> Iterator[str]:
    """PostgreSQL rewrites a statement by a rule and writes another one, or none, without an error."""
    for name in table.rules:
        yield f"has the rule {name}, under which PostgreSQL refuses MERGE; drop it, or let a trigger do what it does"


def _key_problems(table: Table, declared: Sequence[str] | None) -> Iterator[str]:
    key = table.key_of(declared)
    names = {column.name for column in table.columns}
    if not key:
        yield "has no primary key; add one, or name a unique key in the configuration (key: [...])"
    elif not set(key) <= names:
        yield f"has no column {', '.join(sorted(set(key) - names))}, which the configured key names"
    elif not any(set(unique) <= set(key) for unique in table.unique_keys):
        yield f"has no immediate unique index on its key ({', '.join(key)}); create one"
    else:
        for column in (table.column(name) for name in key):
            yield from _key_column_problems(column)


def _key_column_problems(column: Column) -> Iterator[str]:
    if not column.not_null:
        yield f"has the nullable key column {column.name}; set it NOT NULL"
    if not column.type.fit_for_key:
        yield f"has the key column {column.name} of type {column.type.sql}, which cannot identify a row exactly"
    if not column.deterministic:
        yield f"has the key column {column.name} under a nondeterministic collation; use a deterministic one"
    if column.generated:
        yield f"has the generated key column {column.name}; choose a key that is stored"


def _column_problems(shadow: Shadow) -> Iterator[str]:
    for column in shadow.columns:
        if not column.type.supported:
            yield f"has the column {column.name} of type {column.type.sql}, {column.type.problem}"
        if column.identity == "a" and column.name not in shadow.key:
            yield f"has the column {column.name} GENERATED ALWAYS AS IDENTITY outside its key; use BY DEFAULT"
    yield from cast_problems(shadow.columns)


def uncompared_keys(table: Table, declared: Sequence[str] | None) -> Iterator[str]:
    """Key columns by which a replay finds no row, each to be read after the table's name."""
    key = table.key_of(declared)
    for column in table.columns:
        if column.name in key and not column.type.is_comparable:
            yield (
                f"has the key column {column.name} of type {column.type.sql}, which no operator of PostgreSQL's own"
                " compares; name another unique `key`"
            )


def cast_problems(columns: Sequence[Column]) -> Iterator[str]:
    """Casts by somebody's own functions: these would run with the rights of whoever reads or writes a value, and say
    what the value is."""
    for column in columns:
        for cast in column.casts:
            yield (
                f"has the column {column.name} of type {column.type.sql}, which has the cast {cast}: that would run"
                f" with the rights of Concord's logins; DROP CAST {cast.partition(' WITH FUNCTION ')[0]}"
            )


def _listed_problems(shadow: Shadow) -> Iterator[str]:
    """The demands of a column list on a site: rows that come in do not say what stands in the other columns."""
    known = {column.name: column for column in shadow.table.columns}
    for name in shadow.listed or ():
        if name not in known:
            yield f"has no column {name}, which the configuration lists; {did_you_mean(name, known)}"
        elif known[name].generated:
            yield f"has the generated column {name}, which the configuration lists; leave it out of columns"
    for column in shadow.unlisted:
        if column.name in shadow.key:
            yield f"has the key column {column.name}, which the configuration does not list; add it to columns"
    yield from unlisted_problems(shadow)


def unlisted_problems(shadow: Shadow) -> Iterator[str]:
    """Columns that are not replicated, and yet every row must have."""
    for column in shadow.unlisted:
        if column.must_be_given and column.name not in shadow.key:
            yield (
                f"has the column {column.name}, which is not replicated but NOT NULL without a default: rows of other"
                " sites could not be inserted; give it a default, or add it to columns"
            )


def _mapping_problems(shadow: Shadow, manipulation: Manipulation) -> Iterator[str]:
    """The demands of a mapping on a site: its columns are there, of types whose values can be judged (S1-34,
    S0-23)."""
    known = {column.name: column for column in shadow.table.columns}
    for operation in manipulation.operations:
        for name in operation.own:
            if name in known:
                yield from mapped_column_problems(shadow.key, operation, known[name])
            elif shadow.listed is None:
                yield f"has no column {name}, which the mapping names ({operation}); {did_you_mean(name, known)}"
        stale = [name for name in operation.canonical if name in known and not _is_own(manipulation, name)]
        for name in stale if shadow.listed is None else ():
            yield (
                f"has a column {name} besides {', '.join(operation.own)}, which the mapping makes of it"
                f" ({operation}); drop one, or list the columns that are replicated"
            )


def _filter_problems(wanted: ReplicatedTable, shape: Shape) -> Iterator[str]:
    """Columns that a row filter or an ownership filter names and cannot compare here."""
    filters = [*([wanted.where] if wanted.where else []), *wanted.owners.values()]
    yield from dict.fromkeys(
        problem for each in filters for problem in row_filter.problems(each, shape.canonical_column)
    )


def policy_problems(shape: Shape) -> Iterator[str]:
    """Columns by which a resolver decides, and which sites may compare differently."""
    for name in shape.policy.columns:
        column = shape.canonical_column(name)
        if column is None:
            yield f"has no replicated column {name}, by which conflicts are decided; correct the resolvers"
        elif column.name in shape.key_names:
            yield f"decides conflicts by its key column {name}, which is the same on both sides; choose another"
        elif not column.type.sortable:
            yield (
                f"decides conflicts by {name} of type {column.type.sql}, which two sites may order differently; choose"
                " a whole or decimal number, a date or a timestamp"
            )


def filter_problems(
    connection: Connection, site: str, wanted: ReplicatedTable, table: Table
) -> Iterator[str]:
    """The question that only the database can answer of a filter: are its constants values of the columns' types?

    Nothing is read: the condition is planned, not run. Silent where `table_problems` has said why it cannot be: with
    casts that planning might run.
    """
    shape = shape_of(wanted, site, table)
    if any(column.casts for column in shape.columns):
        return
    for name, each in [("where", wanted.where), *(("owners", each) for each in wanted.owners.values())]:
        if each is not None and not list(row_filter.problems(each, shape.canonical_column)):
            condition = row_filter.condition(each, shape.canonical_column, "t")
            try:
                run(connection, f"EXPLAIN SELECT 1 FROM {table.sql} t WHERE {condition}")
            except psycopg.Error as error:
                said = str(error).strip().splitlines()[0]
                yield f"{site}: {wanted.at_site(site)} cannot be filtered by {each}: {said}; correct `{name}`"


def _is_own(manipulation: Manipulation, name: str) -> bool:
    """Whether an operation makes a column of this name at the site."""
    return any(name in operation.own for operation in manipulation.operations)


def mapped_column_problems(key: Sequence[str], operation: Operation, column: Column) -> Iterator[str]:
    """Why the values of a site's column cannot be mapped so, each to be read after the table's name."""
    if isinstance(operation, Rename):
        return
    what = f"has the column {column.name} of type {column.type.sql}"
    if not column.type.mappable:
        yield f"{what}, whose values cannot be mapped exactly ({operation}); such a column can only be renamed"
    elif isinstance(operation, Cast) and column.type.descriptor != descriptor_of(operation.own_form.type):
        yield f"{what}, where the mapping says {operation.own_form.type} ({operation}); correct one of the two"
    if column.name in key and column.type.has_several_forms:
        yield f"{what} in its key: equal numbers have several texts, so it can only be renamed ({operation})"


def outside_parents(
    wanted: Sequence[ReplicatedTable], site: str, tables: Mapping[TableName, Table]
) -> Iterator[tuple[str, str]]:
    """A parent that no link brings cannot be promised to be there (S0-02).

    Each line comes with the name that the child's replication set gives it.
    """
    inside = {each.at_site(site) for each in wanted}
    for each in wanted:
        table = None if each.captured_only else tables.get(each.at_site(site))
        for foreign_key in () if table is None else table.foreign_keys:
            if foreign_key.parent not in inside:
                yield (
                    each.name,
                    f"{site}: {each.at_site(site)} refers to {foreign_key.parent} ({foreign_key.name}), which is not in"
                    " the replication set; add it, or drop the constraint",
                )


def outside_children(
    wanted: Sequence[ReplicatedTable], site: str, tables: Mapping[TableName, Table]
) -> Iterator[str]:
    """A child that no link carries stays where it is, and keeps its parent with it."""
    inside = {table.at_site(site) for table in wanted}
    for table in (each for name, each in tables.items() if name in inside):
        for foreign_key in table.referring:
            if foreign_key.child not in inside:
                yield (
                    f"{site}: {foreign_key.child} refers to {table.name} ({foreign_key.name}) and is not in the"
                    " replication set: its rows are this site's own, and a delete that comes from elsewhere is undone"
                    " where one of them refers to the row"
                )
