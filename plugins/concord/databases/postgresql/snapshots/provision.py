"""The needs of a snapshot at its two sites: a destination that nobody else writes, and rights to read its
source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from concord.databases.contract.quoting import literal, qualified, quote
from concord.databases.postgresql.capture.shadow_table import OF_ROWS, OF_STATEMENTS, trigger_function
from concord.databases.postgresql.facts.catalogue import Column, Table
from concord.databases.postgresql.facts.catalogue_queries import TRIGGER_STATE
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, one, rows, run
from concord.databases.postgresql.facts.privileges import Grant, missing
from concord.databases.postgresql.sites import grants, preflight
from concord.databases.postgresql.sites.grants import Logins
from concord.databases.postgresql.snapshots.layout import Layout, differences, source_layout, source_problems
from concord.jobs.site import Credentials
from concord.jobs.snapshot import SnapshotDefinition
from concord.messages.errors import StructureChanged
from concord.tables.replication_set import TableName

GUARD = "concord_snapshot"


@dataclass(frozen=True, slots=True)
class Ends:
    """One snapshot, and its relations as far as the sites that were looked at have them."""

    snapshot: SnapshotDefinition
    source: Table | None
    target: Table | None
    source_seen: bool  #: was the source site looked at?

    @classmethod
    def of(cls, snapshot: SnapshotDefinition, relations: Mapping[str, Mapping[TableName, Table]]) -> Ends:
        """By the relations of each site that was looked at."""
        source = relations.get(snapshot.source)
        return cls(
            snapshot,
            source=(source or {}).get(snapshot.relation),
            target=relations.get(snapshot.target, {}).get(snapshot.table),
            source_seen=source is not None,
        )

    @property
    def layout(self) -> Layout | None:
        """The query's columns; None where the source was not looked at."""
        if self.source is None:
            return None
        tracked = self.snapshot.tracked
        key = self.source.key_of(tracked.key) if tracked else ()
        return source_layout(self.snapshot, self.source, key)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The key that a created destination gets: the source's, where the snapshot holds all of it."""
        if self.layout is None or self.source is None:
            return ()
        key = self.layout.key or self.source.primary_key
        return key if set(key) <= set(self.layout.names) else ()


def relations(snapshots: tuple[SnapshotDefinition, ...], site: str) -> list[TableName]:
    """The snapshots' parts at this site."""
    return [s.relation for s in snapshots if s.source == site] + [
        s.table for s in snapshots if s.target == site
    ]


def source_refusals(ends: Ends) -> Iterator[str]:
    """Every reason why the source cannot be read, each one line."""
    where = f"{ends.snapshot.source}: {ends.snapshot.relation}"
    if ends.source is None:
        # The capture is checked as that of every captured table.
        if not ends.snapshot.incremental:
            yield f"{where} does not exist, or the installer may not see it; create it or correct its name"
        return
    yield from (f"{where} {problem}" for problem in source_problems(ends.snapshot, ends.source))


def target_refusals(connection: Connection, ends: Ends) -> Iterator[str]:
    """Every reason why the destination cannot be made or filled, each one line."""
    snapshot, table, layout = ends.snapshot, ends.target, ends.layout
    where = f"{snapshot.target}: {snapshot.table}"
    if table is None:
        if not ends.source_seen:
            yield f"{where} does not exist; `provision` all sites together, since its columns come from the source"
        if not rows(
            connection, f"SELECT 1 FROM pg_namespace WHERE nspname = {literal(snapshot.table.schema_name)}"
        ):
            yield f"{where}: there is no schema {snapshot.table.schema_name}; create it first"
        yield from (f"{where}{problem}" for problem in _type_problems(connection, ends))
        return
    yield from (f"{where} {problem}" for problem in _unfit(table))
    if snapshot.name not in known_snapshots(connection) and rows(
        connection, f"SELECT 1 FROM {table.sql} LIMIT 1"
    ):
        yield f"{where} holds rows already, which a refresh would replace; empty it, or name another table"
    if layout is not None:
        yield from differences(layout, table, where)
        if layout.key and not any(set(unique) <= set(layout.key) for unique in table.unique_keys):
            yield f"{where} has no immediate unique index on the key ({', '.join(layout.key)}); create one"


def _type_problems(connection: Connection, ends: Ends) -> Iterator[str]:
    """Types of the source's columns that the destination's site does not have, or does not let the installer use."""
    (installer,) = one(connection, "SELECT current_user::text")
    columns = ends.layout.columns if ends.layout else ()
    for lacked in missing(connection, list(grants.of_types(columns, installer))).values():
        what = f"{lacked.kind.lower()} {'.'.join(lacked.name)}"
        if lacked.absent is not None:
            yield f": there is no {what}, which a column of {ends.snapshot.relation} has; create it first"
        else:
            yield f" has a column of the {what}, which {installer} may not use; {lacked.sql}"


def _unfit(table: Table) -> Iterator[str]:
    """The write step silences triggers, foreign keys among them, so it takes none that it cannot verify."""
    yield from preflight.kind_problems(table)
    yield from preflight.cast_problems(table.columns)
    for key in table.foreign_keys:
        yield f"has the foreign key {key.name}; a copy is as its source is: drop the constraint"
    for key in table.referring:
        yield f"is referred to by {key.child} ({key.name}); its rows come and go with the source: drop the constraint"
    for unique in table.deferrable_unique:
        yield f"has a deferrable unique constraint {unique}; make it NOT DEFERRABLE"


def target_statements(ends: Ends, applier: str) -> Iterator[str]:
    """Create the destination where it is missing (S4-021), guard it, remember it; idempotent."""
    snapshot, name = ends.snapshot, ends.snapshot.table
    table = qualified(name.schema_name, name.name)
    if ends.target is None:
        yield _creation(ends, table)
    guarded = "session_user <> {} OR current_setting('concord.refreshing', true) IS DISTINCT FROM 'on'"
    yield _distrust_if_altered(snapshot, table)
    yield (
        f"CREATE OR REPLACE TRIGGER {GUARD} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}"
        f" FOR EACH STATEMENT WHEN ({guarded.format(literal(applier))})"
        f" EXECUTE FUNCTION concord.refuse_snapshot_edit({literal(snapshot.name)})"
    )
    yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {GUARD}"
    yield f"""
INSERT INTO concord.snapshot (name, kind, relation, guard)
SELECT {literal(snapshot.name)}, {literal(snapshot.kind)}, {literal(table)}, {actual_guard(table)}
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, relation = excluded.relation, guard = excluded.guard
 WHERE (snapshot.*) IS DISTINCT FROM (excluded.*)"""


def needed_grants(ends: Ends, site: str, logins: Logins) -> list[Grant]:
    """The needs of a refresh at one of the two sites, beside those of every link."""
    snapshot = ends.snapshot
    if snapshot.source == site:
        return list(grants.of_snapshot_source(snapshot.relation, logins))
    return list(grants.of_snapshot_target(snapshot.table, _columns(ends), logins))


def _columns(ends: Ends) -> tuple[Column, ...]:
    if ends.target is not None:
        return ends.target.columns
    return ends.layout.columns if ends.layout else ()


def _creation(ends: Ends, table: str) -> str:
    """The query's layout, with the source's own types."""
    assert ends.layout is not None, "a destination is made only when its source was looked at"
    parts = [f"{column.sql} {column.type.sql}" for column in ends.layout.columns]
    if ends.primary_key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quote, ends.primary_key))})")
    return f"CREATE TABLE {table} ({', '.join(parts)})"


def actual_guard(table: str) -> str:
    """Subquery: the guard as it stands now; NULL when it is gone."""
    return (
        f"(SELECT {TRIGGER_STATE} FROM pg_trigger t WHERE t.tgrelid = to_regclass({literal(table)})"
        f" AND t.tgname = {literal(GUARD)})"
    )


def _distrust_if_altered(snapshot: SnapshotDefinition, table: str) -> str:
    """Where the guard is not as it was registered, somebody may have edited the copy: it must be filled anew."""
    return f"""
UPDATE concord.link_state l SET initialized = '{{}}' FROM concord.snapshot s
 WHERE s.name = {literal(snapshot.name)} AND l.link = 'snapshot/' || s.name || '/forward' AND l.role = 'target'
   AND (s.relation, s.guard) IS DISTINCT FROM ({literal(table)}, {actual_guard(table)})"""


def known_snapshots(connection: Connection) -> Mapping[str, tuple[str, str]]:
    """The snapshots that the site holds: name → its table, and the guard as it was registered."""
    if not rows(connection, "SELECT 1 WHERE to_regclass('concord.snapshot') IS NOT NULL"):
        return {}
    return {
        name: (relation, guard)
        for name, relation, guard in rows(connection, "SELECT name, relation, guard FROM concord.snapshot")
    }


def guard_problem(connection: Connection, snapshot: SnapshotDefinition) -> str | None:
    """Why the destination cannot be trusted to hold what the last refresh wrote, if so."""
    table = qualified(snapshot.table.schema_name, snapshot.table.name)
    known = known_snapshots(connection).get(snapshot.name)
    if known is None or known[0] != table:
        return f"is not provisioned for the snapshot {snapshot.name}; run `provision`"
    if rows(connection, f"SELECT {actual_guard(table)}") != [(known[1],)]:
        return "has lost or changed its guard, so somebody may have edited it; run `provision`, and it is filled anew"
    return None


def check(connection: Connection, site: str, snapshots: Sequence[SnapshotDefinition]) -> Iterator[str]:
    """Destinations missing or altered since the site was provisioned, each one line."""
    for snapshot in snapshots:
        if snapshot.target == site and (problem := guard_problem(connection, snapshot)):
            yield f"{site}: {snapshot.table} {problem}"


def drop(installer: Credentials, site: str, name: str, *, with_table: bool) -> list[str]:
    """Take a snapshot off one site, in one transaction; what was taken, each a phrase (S4-026).

    A capture that served snapshots alone goes with the last of them (S4-017). Raises StructureChanged when
    something depends on the table; then nothing was taken.
    """
    with connect(installer, "concord snapshot drop") as connection:
        try:
            with connection.transaction():
                run(connection, "SET LOCAL lock_timeout = '10s'")
                return [
                    *_drop_target(connection, name, with_table=with_table),
                    *_drop_source(connection, name),
                ]
        except psycopg.errors.DependentObjectsStillExist as error:
            said = (error.diag.message_detail or str(error)).splitlines()[0]
            raise StructureChanged(f"{site}: {said}; drop that first. Nothing was taken here") from error
        except psycopg.Error as error:
            raise in_our_words(error, site) from error


def _drop_target(connection: Connection, name: str, *, with_table: bool) -> Iterator[str]:
    known = known_snapshots(connection).get(name)
    if known is not None:
        table = known[0]
        if with_table:
            run(connection, f"DROP TABLE IF EXISTS {table}")
        elif rows(connection, f"SELECT 1 WHERE to_regclass({literal(table)}) IS NOT NULL"):
            run(connection, f"DROP TRIGGER IF EXISTS {GUARD} ON {table}")
        run(connection, f"DELETE FROM concord.snapshot WHERE name = {literal(name)}")
        yield f"the table {table}" if with_table else f"the guard of {table}, which stays with its rows"


def _drop_source(connection: Connection, name: str) -> Iterator[str]:
    """The site's record of the snapshot; at the source also the capture of its changes."""
    if not rows(connection, "SELECT 1 WHERE to_regclass('concord.link_state') IS NOT NULL"):
        return
    link, lease = literal(f"snapshot/{name}/forward"), literal(f"snapshot/{name}")
    carried = rows(
        connection,
        f"SELECT jsonb_object_keys(initialized) FROM concord.link_state WHERE link = {link} AND role = 'source'",
    )
    taken = run(
        connection,
        f"DELETE FROM concord.synchronization WHERE name = {lease}",
        f"DELETE FROM concord.link_state WHERE link = {link}",
    )
    if taken:
        yield "what it remembered of the snapshot"
    for (table,) in carried:
        yield from _drop_capture(connection, table)


def _drop_capture(connection: Connection, name: str) -> Iterator[str]:
    """Only where it was made for snapshots, whose names of tables end in @site, and where no other needs it."""
    unused = (
        f"SELECT relation, shadow FROM concord.replicated_table r WHERE name = {literal(name)}"
        " AND name LIKE '%@' || (SELECT name FROM concord.site)"
        " AND NOT EXISTS (SELECT 1 FROM concord.link_state l WHERE l.initialized ? r.name)"
    )
    for relation, shadow in rows(connection, unused):
        functions = (trigger_function(name, what) for what in (OF_ROWS, *OF_STATEMENTS))
        run(
            connection,
            f"DROP TRIGGER IF EXISTS zz_concord_truncate ON {relation}",
            *(f"DROP FUNCTION IF EXISTS {function} CASCADE" for function in functions),
            f"DROP TABLE {qualified('concord', shadow)}",
            f"DELETE FROM concord.replicated_table WHERE name = {literal(name)}",
        )
        yield f"the capture of {relation}"
