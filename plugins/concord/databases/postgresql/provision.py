"""Make a site ready: control objects, shadow tables, triggers, grants; the same text for a DBA to run by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from concord.databases.postgresql import (
    application_triggers,
    before_image,
    capture,
    control,
    mark_problems,
    preflight,
    private_columns,
    registration,
    triggers,
)
from concord.databases.postgresql.canonical import structure_of
from concord.databases.postgresql.capture import Shadow
from concord.databases.postgresql.catalogue import ForeignKey, Table, read_tables
from concord.databases.postgresql.session import Connection, in_our_words, one, rows, run
from concord.databases.quoting import literal, qualified, quote
from concord.errors import ProvisioningRefused
from concord.manipulation import Manipulation
from concord.replication_set import ReplicatedTable, TableName
from concord.structure import Structure

#: Settings that the applier must be allowed to change: it silences application triggers, and it gives way
#: to applications when both wait for each other.
APPLIER_SETTINGS = ("session_replication_role", "deadlock_timeout")


@dataclass(frozen=True, slots=True)
class SiteState:
    """What one site looks like before it is provisioned."""

    site: str
    facts: preflight.SiteFacts
    wanted: tuple[ReplicatedTable, ...]
    tables: Mapping[TableName, Table]
    registered: Mapping[str, registration.Registered]

    def table(self, wanted: ReplicatedTable) -> Table | None:
        return self.tables.get(wanted.at_site(self.site))

    def structure(self, wanted: ReplicatedTable) -> Structure | None:
        """The table's columns in canonical form; None where it does not exist."""
        if (table := self.table(wanted)) is None:
            return None
        shadow = Shadow.of(wanted, self.site, table)
        added = registration.added(shadow, self.registered.get(wanted.name))
        return structure_of(self.site, shadow, wanted.manipulation_at(self.site), added)

    def manipulation(self, name: str) -> Manipulation:
        return next(each.manipulation_at(self.site) for each in self.wanted if each.name == name)

    @property
    def private(self) -> dict[str, dict[str, Any]]:
        """What the ledger must not show of each table here."""
        wanted = zip(self.wanted, self.shadows(), strict=True)
        return {each.name: private_columns.private_at(each, self.site, shadow) for each, shadow in wanted}

    @property
    def private_before(self) -> dict[str, Mapping[str, Any]]:
        """What the ledger had not to show of each table here when the site was last provisioned."""
        return {name: known.private for name, known in self.registered.items()}

    def shadows(self) -> Iterator[Shadow]:
        for wanted in self.wanted:
            table = self.tables[wanted.at_site(self.site)]
            yield Shadow.of(wanted, self.site, table)


def read_site(
    connection: Connection, site: str, wanted: Sequence[ReplicatedTable], controller_clock: float
) -> SiteState:
    """Facts and catalogue of a site. Reads only."""
    names = [table.at_site(site) for table in wanted]
    facts = preflight.read_facts(connection, site, controller_clock)
    registered = {} if facts.provisioned_as is None else registration.read(connection)
    return SiteState(site, facts, tuple(wanted), read_tables(connection, names), registered)


def problems(state: SiteState, reader: str, applier: str, connection: Connection) -> Iterator[str]:
    """Every reason not to provision this site, each one line."""
    yield from preflight.site_problems(state.facts)
    for wanted in state.wanted:
        yield from preflight.table_problems(state.site, wanted, state.table(wanted))
        table = state.table(wanted)
        if table is not None:
            yield from preflight.filter_problems(connection, state.site, wanted, table)
            yield from mark_problems.problems(connection, state.site, wanted, table)
            shadow = Shadow.of(wanted, state.site, table)
            yield from private_columns.problems(wanted, state.site, table, shadow)
    yield from preflight.outside_parents(state.wanted, state.site, state.tables)
    yield from application_triggers.refusals(connection, state.site, _written(state))
    yield from _role_problems(connection, state.site, reader, applier)
    yield from _stale_shadow_problems(connection, state)


def notices(state: SiteState, connection: Connection) -> Iterator[str]:
    """What is no mistake and yet worth knowing of one site's tables, each one line."""
    yield from preflight.outside_children(state.wanted, state.site, state.tables)
    yield from application_triggers.notices(connection, state.site, _written(state))


def _written(state: SiteState) -> dict[TableName, Table]:
    """The tables that links write."""
    written = (each.at_site(state.site) for each in state.wanted if not each.captured_only)
    return {name: state.tables[name] for name in written if name in state.tables}


def _role_problems(connection: Connection, site: str, reader: str, applier: str) -> Iterator[str]:
    for role in sorted({reader, applier}):
        if not rows(connection, f"SELECT 1 FROM pg_roles WHERE rolname = {literal(role)} AND rolcanlogin"):
            yield f"{site}: there is no login {role}; CREATE ROLE {quote(role)} LOGIN PASSWORD '…' first"


def _stale_shadow_problems(connection: Connection, state: SiteState) -> Iterator[str]:
    """A shadow table made for another key would mix two identities of one row."""
    if state.facts.provisioned_as is None:
        return
    known = {name: registered.key for name, registered in state.registered.items()}
    for wanted in state.wanted:
        table = state.table(wanted)
        if wanted.name in known:
            yield from mark_problems.tracked_otherwise(
                state.site, wanted, table, state.registered[wanted.name].tracking
            )
        if (
            table
            and wanted.name in known
            and known[wanted.name] != list(table.key_of(wanted.key_at(state.site)))
        ):
            yield (
                f"{state.site}: the key of {wanted.name} was {', '.join(known[wanted.name])} when it was provisioned;"
                " remove the table from the site (provision --remove) and initialize again"
            )
    yield from _key_type_problems(connection, state, known)


def _key_type_problems(
    connection: Connection, state: SiteState, known: Mapping[str, object]
) -> Iterator[str]:
    """A shadow key of another type than the table's would round, cut or refuse what users write."""
    for wanted in state.wanted:
        table = state.table(wanted)
        if table is None or wanted.name not in known:
            continue
        shadow = Shadow.of(wanted, state.site, table)
        stored = [
            kind
            for (kind,) in rows(
                connection,
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
                f" WHERE attrelid = to_regclass({literal(shadow.sql)}) AND attnum BETWEEN 1 AND {len(shadow.key)}"
                " ORDER BY attnum",
            )
        ]
        now = [table.column(name).type.sql for name in shadow.key]
        if stored and stored != now:
            yield (
                f"{state.site}: the key of {wanted.name} was of type {', '.join(stored)} when it was provisioned and is"
                f" {', '.join(now)} now; remove the site (provision --remove), provision and initialize it again"
            )


def statements(state: SiteState, reader: str, applier: str, snapshots: Sequence[str] = ()) -> list[str]:
    """What provisioning runs, in order, in one transaction; idempotent. `snapshots` are the statements for those."""
    made = [*_locks(state), *control.statements(state.site), *snapshots]
    for shadow in state.shadows():
        manipulation = state.manipulation(shadow.name)
        made.append(registration.distrust(shadow, manipulation))
        made += capture.statements(shadow) + triggers.statements(shadow, applier, state.facts.version)
        known = state.registered.get(shadow.name)
        if known is not None and known.keeps_base and not shadow.keeps_base:
            made.append(before_image.dropped_from(shadow.sql))
        made += registration.statements(shadow, manipulation)
    made += private_columns.statements(state.private, state.private_before)
    return made + list(_grants(state, reader, applier))


def _locks(state: SiteState) -> Iterator[str]:
    """What is captured already first, as users lock it before what capture writes and reads: else both would wait."""
    captured = (each for each in state.shadows() if each.marks is None and each.name in state.registered)
    if tables := [shadow.table.sql for shadow in captured]:
        yield f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE"


def _grants(state: SiteState, reader: str, applier: str) -> Iterator[str]:
    """Three roles, each with what it needs and no more (S0-43, S7)."""
    both = ", ".join(quote(role) for role in sorted({reader, applier}))
    read, write = quote(reader), quote(applier)
    yield f"GRANT USAGE ON SCHEMA concord TO {both}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA concord TO {both}"
    yield f"GRANT INSERT, UPDATE ON concord.synchronization, concord.link_state TO {write}"
    yield f"GRANT INSERT, UPDATE, DELETE ON concord.initialization, concord.waiting TO {write}"
    # Identity and incarnation: for a restored site that `initialize` was told to accept.
    yield f"GRANT UPDATE (heartbeat, acquired, stamp_floor, identity, incarnation) ON concord.site TO {write}"
    yield f"GRANT UPDATE (registered, writers) ON concord.replicated_table TO {write}"
    yield f"GRANT INSERT, DELETE ON concord.conflict, concord.overturn TO {write}"
    yield f"GRANT USAGE, CREATE ON SCHEMA concord_staging TO {write}"
    settings = ", ".join(APPLIER_SETTINGS)
    yield f"GRANT SET ON PARAMETER {settings} TO {write}"
    yield f"GRANT TEMPORARY ON DATABASE {quote(state.facts.database)} TO {write}"
    captured_only = {wanted.name for wanted in state.wanted if wanted.captured_only}
    for shadow in state.shadows():
        table = shadow.table
        yield f"GRANT USAGE ON SCHEMA {quote(table.name.schema_name)} TO {both}"
        yield f"GRANT SELECT ON {table.sql} TO {read}"
        if shadow.name in captured_only:
            yield f"GRANT SELECT ON {table.sql}, {shadow.sql} TO {write}"
            yield f"GRANT UPDATE, DELETE ON {shadow.sql} TO {write}"
            continue
        yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table.sql}, {shadow.sql} TO {write}"
        yield from _type_schemas(table, write)
        yield from _outside_children(table, state, write)


def _type_schemas(table: Table, applier: str) -> Iterator[str]:
    """What travels as text is cast back by name, and a name is seen only in a schema one may use."""
    for schema in sorted({column.type_schema for column in table.sent} - {"pg_catalog"}):
        yield f"GRANT USAGE ON SCHEMA {schema} TO {applier}"


def _outside_children(table: Table, state: SiteState, applier: str) -> Iterator[str]:
    """A delete must see the children that refer to it, wherever they are (rule 13)."""
    inside = {wanted.at_site(state.site) for wanted in state.wanted}
    for child in sorted({str(key.child): key for key in table.referring if key.child not in inside}.items()):
        foreign_key: ForeignKey = child[1]
        yield f"GRANT USAGE ON SCHEMA {quote(foreign_key.child.schema_name)} TO {applier}"
        yield f"GRANT SELECT ON {qualified(foreign_key.child.schema_name, foreign_key.child.name)} TO {applier}"


def _already_granted(connection: Connection, applier: str) -> bool:
    granted = [
        f"has_parameter_privilege({literal(applier)}, {literal(name)}, 'SET')" for name in APPLIER_SETTINGS
    ]
    return bool(one(connection, f"SELECT {' AND '.join(granted)}")[0])


def provision(
    connection: Connection,
    state: SiteState,
    reader: str,
    applier: str,
    snapshots: Sequence[str] = (),
    afterwards: Sequence[str] = (),
) -> None:
    """Run the statements, and those that follow on them, in one transaction.

    Raises ProvisioningRefused; then nothing was written.
    """
    try:
        granted = _already_granted(connection, applier)
        with connection.transaction():
            run(connection, "SET LOCAL lock_timeout = '10s'")
            for statement in (*statements(state, reader, applier, snapshots), *afterwards):
                if not (granted and statement.startswith("GRANT SET ON PARAMETER")):
                    run(connection, statement)
    except psycopg.Error as error:
        raise ProvisioningRefused(f"{_advice(state.site, error)}; nothing was written") from error


def _advice(site: str, error: psycopg.Error) -> str:
    said = str(error).strip().splitlines()[0]
    if error.sqlstate == "42501":
        return f"{site}: {said}; let a superuser run the output of `provision --print-sql`"
    if error.sqlstate == "55P03":
        return f"{site}: a long transaction holds a table that triggers must be added to; try again when it has ended"
    return f"{site}: {said}"


def check(state: SiteState) -> Iterator[str]:
    """What is missing or altered since the site was provisioned, each one line; silent when all is well."""
    if state.facts.provisioned_as is None:
        yield f"{state.site}: is not provisioned; run `provision`"
        return
    if state.facts.provisioned_identity != state.facts.identity:
        yield (
            f"{state.site}: is not the database that was provisioned (restored, cloned or failed over); mend the"
            " connection, or run `initialize NAME --accept-restored` for each of its synchronizations"
        )
    if state.facts.format < control.FORMAT:
        yield f"{state.site}: was provisioned by an earlier version of Concord; run `provision`"
    for lines in altered(state).values():
        yield from lines


def altered(state: SiteState) -> dict[str, list[str]]:
    """What is wrong with each table since it was provisioned; those that are well are left out."""
    known = state.registered
    found = {
        wanted.name: list(
            registration.problems(state.site, wanted, state.table(wanted), known.get(wanted.name))
        )
        for wanted in state.wanted
    }
    return {name: lines for name, lines in found.items() if lines}


def remove(connection: Connection, state: SiteState) -> list[str]:
    """Statements that take Concord off a site; the replicated tables and their rows stay."""
    taken = [
        f"DROP TRIGGER IF EXISTS {quote(trigger)} ON {table.sql}"
        for table in state.tables.values()
        for trigger in table.triggers
    ]
    tracked = [each.tracking for each in state.registered.values()]
    views = [f"DROP VIEW IF EXISTS {each['view']}" for each in tracked if "view" in each]
    return views + taken + control.removal()


def remove_now(connection: Connection, state: SiteState) -> None:
    """Run `remove` in one transaction."""
    try:
        with connection.transaction():
            run(connection, "SET LOCAL lock_timeout = '10s'", *remove(connection, state))
    except psycopg.Error as error:
        raise in_our_words(error, state.site) from error


def writable_elsewhere(connection: Connection, applier: str) -> list[str]:
    """Tables outside Concord's own that the applier may write although no link does; for `provision --check`."""
    return [
        name
        for (name,) in rows(
            connection,
            f"""
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'concord', 'concord_staging')
   AND NOT EXISTS (SELECT 1 FROM concord.replicated_table r WHERE to_regclass(r.relation) = c.oid)
   AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'concord_snapshot')
   AND has_table_privilege({literal(applier)}, c.oid, 'INSERT, UPDATE, DELETE') ORDER BY 1""",
        )
    ]
