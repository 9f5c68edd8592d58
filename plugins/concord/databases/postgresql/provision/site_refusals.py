"""Every reason that one site's database gives not to provision it, each about the site or some of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from concord.databases.contract.quoting import literal, quote
from concord.databases.contract.refusal import Refusal, of_site, of_snapshot, of_table
from concord.databases.contract.surveyed_site import Installation
from concord.databases.postgresql.capture import private_columns
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import application_triggers
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.provision.site_statements import written
from concord.databases.postgresql.replication.provision import Replications
from concord.databases.postgresql.sites import log_problems, mark_problems, owner, preflight
from concord.databases.postgresql.sites.state import SiteState
from concord.databases.postgresql.snapshots import provision as snapshot_provision
from concord.databases.postgresql.snapshots.provision import Ends
from concord.tables.replication_set import ReplicatedTable


def of_links(connection: Connection, state: SiteState, reader: str, applier: str) -> Iterator[Refusal]:
    """The site itself, and the tables that its links carry."""
    yield from of_site(preflight.site_problems(state.facts))
    yield from of_site(owner.problems(owner.read(connection, state.facts, state.owner)))
    for each in state.wanted:
        yield from of_table(each.name, _table_problems(connection, state, each))
    for name, line in preflight.outside_parents(state.wanted, state.site, state.tables):
        yield from of_table(name, [line])
    names = {each.at_site(state.site): each.name for each in state.wanted}
    for table, line in application_triggers.refusals(connection, state.site, written(state)):
        yield from of_table(names[table], [line])
    yield from of_site(_role_problems(connection, state.site, reader, applier))
    yield from _stale_shadow_problems(connection, state)


def _table_problems(connection: Connection, state: SiteState, wanted: ReplicatedTable) -> Iterator[str]:
    table = state.table(wanted)
    yield from preflight.table_problems(state.site, wanted, table)
    yield from added_rows.problems(connection, state.site, wanted)
    if table is not None:
        yield from preflight.filter_problems(connection, state.site, wanted, table)
        yield from mark_problems.problems(connection, state.site, wanted, table)
        shadow = Shadow.of(wanted, state.site, table)
        yield from private_columns.problems(wanted, state.site, table, shadow)


def _role_problems(connection: Connection, site: str, reader: str, applier: str) -> Iterator[str]:
    for role in sorted({reader, applier}):
        if not rows(connection, f"SELECT 1 FROM pg_roles WHERE rolname = {literal(role)} AND rolcanlogin"):
            yield f"{site}: there is no login {role}; CREATE ROLE {quote(role)} LOGIN PASSWORD '…' first"


def _stale_shadow_problems(connection: Connection, state: SiteState) -> Iterator[Refusal]:
    """A shadow table made for another key would mix two identities of one row."""
    if state.facts.provisioned_as is None:
        return
    known = {name: registered.key for name, registered in state.registered.items()}
    for wanted in state.wanted:
        if wanted.name in known:
            yield from of_table(wanted.name, _tracked_or_keyed_otherwise(state, wanted))
    yield from _key_type_problems(connection, state, known)


def _tracked_or_keyed_otherwise(state: SiteState, wanted: ReplicatedTable) -> Iterator[str]:
    table, known = state.table(wanted), state.registered[wanted.name]
    yield from mark_problems.tracked_otherwise(state.site, wanted, table, known.tracking)
    if table and known.key != list(table.key_of(wanted.key_at(state.site))):
        yield (
            f"{state.site}: the key of {wanted.name} was {', '.join(known.key)} when it was provisioned;"
            " remove the table from the site (provision --remove) and initialize again"
        )


def _key_type_problems(
    connection: Connection, state: SiteState, known: Mapping[str, object]
) -> Iterator[Refusal]:
    """A shadow key of another type than the table's would round, cut or refuse what users write."""
    for wanted in state.wanted:
        table = state.table(wanted)
        if table is None or wanted.name not in known:
            continue
        shadow = Shadow.of(wanted, state.site, table)
        if not set(shadow.key) <= {column.name for column in table.columns}:
            continue
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
            line = (
                f"{state.site}: the key of {wanted.name} was of type {', '.join(stored)} when it was provisioned and is"
                f" {', '.join(now)} now; remove the site (provision --remove), provision and initialize it again"
            )
            yield from of_table(wanted.name, [line])


def of_log(
    connection: Connection, state: SiteState, wanted: Installation, replications: Replications
) -> Iterator[Refusal]:
    """The site's log, where it is read for links, and the tables of which it is to tell."""
    published = replications.published().values()
    whole = {each.table.oid for tables in published for each in tables if each.full}
    logged = list(log_problems.logged(state))
    if logged:
        yield from of_site(log_problems.refusals(connection, state.site, wanted.log_reader))
        yield from of_site(log_problems.login_refusals(connection, state.facts, wanted))
    for shadow in logged:
        yield from of_table(shadow.name, log_problems.table_refusals(connection, state.site, shadow, whole))
    if not wanted.log_reader and any(each.by_log for each in state.registered.values()):
        yield Refusal(
            f"{state.site}: its log is read until now; leave its log_reader there until `provision` has run"
        )


def of_snapshots(connection: Connection, site: str, snapshots: Iterable[Ends]) -> Iterator[Refusal]:
    """The snapshots that the site is an end of."""
    for ends in snapshots:
        if ends.snapshot.source == site:
            yield from of_snapshot(ends.snapshot.name, snapshot_provision.source_refusals(ends))
        else:
            yield from of_snapshot(ends.snapshot.name, snapshot_provision.target_refusals(connection, ends))
