"""Which rights a site's logins need, and no more (S0-43): provisioning grants them, and every run asks for
them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import sequences
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.privileges import Grant, Kind
from concord.rules.hook import Hook
from concord.tables.replication_set import ReplicatedTable, TableName

#: Settings that the applier must be allowed to change: it silences application triggers, and it gives way
#: to applications when both wait for each other.
APPLIER_SETTINGS = ("session_replication_role", "deadlock_timeout")

#: Concord's own tables that both logins read, and those that the applier writes besides.
OWN_TABLES = {
    "site": (),
    "synchronization": ("INSERT", "UPDATE"),
    "link_state": ("INSERT", "UPDATE"),
    "replicated_table": (),
    "snapshot": (),
    "conflict": ("INSERT",),  # what is old is deleted by a function of the site's own (`conflict_retention`)
    "overturn": ("INSERT",),
    "initialization": ("INSERT", "UPDATE", "DELETE"),
    "compensation": ("INSERT", "DELETE"),
    "late_index": (),  # its installer's
    "entry": ("INSERT", "DELETE"),
    "last_entry": ("UPDATE",),
    "captured_by": (),
    "consumed": ("INSERT", "DELETE"),
    "kept_operations": ("INSERT", "UPDATE", "DELETE"),
    "recorded_copy": ("INSERT", "DELETE"),
    "replay": ("INSERT", "UPDATE"),
    "log_capture": ("UPDATE",),
    "applied": ("INSERT", "DELETE"),
    "skipped": ("INSERT",),
    "waiting": ("INSERT", "UPDATE", "DELETE"),
}

#: Columns that the applier updates, of tables whose other columns it must not.
OWN_COLUMNS = {
    "site": ("heartbeat", "acquired", "stamp_floor"),
    "replicated_table": ("registered", "writers", "history_lost", "forgotten"),
    "skipped": ("mended_at",),
}

#: Of users' operations the applier sees no value: it orders them, and deletes those that nobody needs any more.
OPERATIONS = ("concord", "operation")
ORDERED_BY = ("place", "transaction", "relation", "at", "bytes")

OWN_FUNCTIONS = ("vector_includes", "vector_unite", "vector_newest", "purge_conflicts")


@dataclass(frozen=True, slots=True)
class Logins:
    """The two that links use at a site."""

    reader: str
    applier: str

    @property
    def both(self) -> list[str]:
        """Or one that is used for both."""
        return sorted({self.reader, self.applier})


def of_site(database: str, logins: Logins) -> Iterator[Grant]:
    """The rights that links need at any site, whatever it carries."""
    for role in logins.both:
        yield connect(role, database)
        yield usage(role, "concord")
        yield from (Grant(role, ("SELECT",), Kind.TABLE, ("concord", table)) for table in OWN_TABLES)
    applier = logins.applier
    yield Grant(logins.reader, ("SELECT",), Kind.TABLE, OPERATIONS)
    yield Grant(applier, ("SELECT",), Kind.TABLE, OPERATIONS, ORDERED_BY)
    yield Grant(applier, ("DELETE",), Kind.TABLE, OPERATIONS)
    yield from (Grant(applier, ("EXECUTE",), Kind.FUNCTION, ("concord", each)) for each in OWN_FUNCTIONS)
    for table, written in OWN_TABLES.items():
        if written:
            yield Grant(applier, written, Kind.TABLE, ("concord", table))
    for table, columns in OWN_COLUMNS.items():
        yield Grant(applier, ("UPDATE",), Kind.TABLE, ("concord", table), columns)
    yield Grant(applier, ("USAGE", "CREATE"), Kind.SCHEMA, ("concord_staging",))
    yield from (Grant(applier, ("SET",), Kind.PARAMETER, (setting,)) for setting in APPLIER_SETTINGS)
    yield Grant(applier, ("TEMPORARY",), Kind.DATABASE, (database,))


def of_table(
    wanted: ReplicatedTable, shadow: Shadow, inside: Collection[TableName], logins: Logins
) -> Iterator[Grant]:
    """The rights that links need to carry one table; `inside` are the tables of the site's replication sets."""
    table, own = shadow.table, ("concord", shadow.relation)
    yield from (usage(role, table.name.schema_name) for role in logins.both)
    for name in (_parts(table.name), own):
        yield Grant(logins.reader, ("SELECT",), Kind.TABLE, name)
    if wanted.captured_only:
        yield Grant(logins.applier, ("SELECT",), Kind.TABLE, _parts(table.name))
        yield Grant(logins.applier, ("SELECT", "UPDATE", "DELETE"), Kind.TABLE, own)
        return
    for name in (_parts(table.name), own):
        yield Grant(logins.applier, ("SELECT", "INSERT", "UPDATE", "DELETE"), Kind.TABLE, name)
    yield from of_types(table.sent, logins.applier)
    yield from (usage(role, schema) for role in logins.both for schema in sorted(table.compared_in))
    yield from _of_outside_children(table, inside, logins.applier)
    yield from sequences.rights_to_move(table.sequences, logins.applier)


def of_hook(hook: Hook | None, applier: str) -> Iterator[Grant]:
    """The applier may add rows for it, and read nothing of what stands there (S3-13)."""
    for added in () if hook is None else hook.adds:
        yield usage(applier, added.table.schema_name)
        yield Grant(applier, ("INSERT",), Kind.TABLE, _parts(added.table), added.columns)


def of_types(columns: Collection[Column], applier: str) -> Iterator[Grant]:
    """A value that travels as text is cast back by its type's name. The name is seen only in a schema one may use,
    and tables hold it."""
    own = {(column.type_schema, column.granted) for column in columns}
    for schema, granted in sorted(each for each in own if each[0] != "pg_catalog"):
        yield usage(applier, schema)
        yield Grant(applier, ("USAGE",), Kind.TYPE, granted)


def of_snapshot_source(relation: TableName, logins: Logins) -> Iterator[Grant]:
    """The reader may read what the snapshot selects from."""
    yield usage(logins.reader, relation.schema_name)
    yield Grant(logins.reader, ("SELECT",), Kind.TABLE, _parts(relation))


def of_snapshot_target(table: TableName, columns: Collection[Column], logins: Logins) -> Iterator[Grant]:
    """The applier may fill the copy, and the reader look at it."""
    yield from (usage(role, table.schema_name) for role in logins.both)
    yield Grant(logins.reader, ("SELECT",), Kind.TABLE, _parts(table))
    yield Grant(logins.applier, ("SELECT", "INSERT", "UPDATE", "DELETE"), Kind.TABLE, _parts(table))
    yield from of_types(columns, logins.applier)


def of_history(
    table: TableName, columns: Collection[Column], logins: Logins, *, forgets: bool
) -> Iterator[Grant]:
    """The applier may append to it, and delete where old versions go; the reader looks. Nobody changes a version."""
    yield from (usage(role, table.schema_name) for role in logins.both)
    yield Grant(logins.reader, ("SELECT",), Kind.TABLE, _parts(table))
    rights = ("SELECT", "INSERT", "DELETE") if forgets else ("SELECT", "INSERT")
    yield Grant(logins.applier, rights, Kind.TABLE, _parts(table))
    yield from of_types(columns, logins.applier)


def of_procedures(procedures: Collection[TableName], applier: str) -> Iterator[Grant]:
    """The applier may call them."""
    for each in procedures:
        yield usage(applier, each.schema_name)
        yield Grant(applier, ("EXECUTE",), Kind.PROCEDURE, _parts(each))


def _of_outside_children(table: Table, inside: Collection[TableName], applier: str) -> Iterator[Grant]:
    """A delete must see the children that refer to it, wherever they are (rule 13)."""
    for child in sorted({key.child for key in table.referring if key.child not in inside}, key=str):
        yield usage(applier, child.schema_name)
        yield Grant(applier, ("SELECT",), Kind.TABLE, _parts(child))


def connect(role: str, database: str) -> Grant:
    """To log in."""
    return Grant(role, ("CONNECT",), Kind.DATABASE, (database,))


def usage(role: str, schema: str) -> Grant:
    """To see what is in a schema."""
    return Grant(role, ("USAGE",), Kind.SCHEMA, (schema,))


def _parts(name: TableName) -> tuple[str, str]:
    return name.schema_name, name.name
