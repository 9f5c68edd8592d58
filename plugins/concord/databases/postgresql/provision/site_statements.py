"""Make a site ready: control objects, shadow tables, triggers, grants; the same text for a DBA to run by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import psycopg

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture import before_image, by_log, private_columns, shadow_table, triggers
from concord.databases.postgresql.facts import application_triggers, lock_holders, ownership, privileges
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, in_our_words, rows, run
from concord.databases.postgresql.facts.own_schema import FORMAT, SCHEMAS
from concord.databases.postgresql.provision import control
from concord.databases.postgresql.provision.site_log import SiteLog
from concord.databases.postgresql.sites import owner, preflight, registration, surplus
from concord.databases.postgresql.sites.grants import Logins
from concord.databases.postgresql.sites.state import SiteState, altered, needed_grants
from concord.messages import incarnation
from concord.messages.errors import ProvisioningRefused
from concord.tables.replication_set import TableName


def notices(state: SiteState, connection: Connection) -> Iterator[str]:
    """Notices about one site's tables, each one line."""
    yield from preflight.outside_children(state.wanted, state.site, state.tables)
    yield from application_triggers.notices(connection, state.site, written(state))


def written(state: SiteState) -> dict[TableName, Table]:
    """The tables that links write."""
    written = (each.at_site(state.site) for each in state.wanted if not each.captured_only)
    return {name: state.tables[name] for name in written if name in state.tables}


def statements(
    state: SiteState,
    reader: str,
    applier: str,
    snapshots: Sequence[str] = (),
    afterwards: Sequence[str] = (),
) -> list[str]:
    """The statements of provisioning after `locks`, in order, in one transaction; idempotent.

    `snapshots` are the statements for those, and `afterwards` what needs the shadow tables.
    """
    facts = state.facts
    owned = owner.statements(state.owner, facts.user, facts.version)
    handed_over = owner.handed_over(state.owner, facts.user)
    # First of all, since no statement may alter an object of somebody else's.
    made = [*owned, *handed_over, *control.statements(state.site), *snapshots]
    made += [by_log.begun()] if any(each.by_log for each in state.shadows()) else []
    for shadow in state.shadows():
        manipulation = state.manipulation(shadow.name)
        made.append(registration.distrust(shadow, manipulation))
        made += shadow_table.statements(shadow) + triggers.statements(shadow, applier, facts.version)
        known = state.registered.get(shadow.name)
        if known is not None and known.keeps_base and not shadow.keeps_base:
            made.append(before_image.dropped_from(shadow.sql))
        made += registration.statements(shadow, manipulation)
        made += by_log.remembering(shadow) if shadow.by_log else [by_log.forgetting(shadow.name)]
    made += private_columns.statements(state.private, state.private_before)
    logins = Logins(reader, applier)
    needed = needed_grants(state, logins, state.wanted)
    granted = [surplus.revocation(needed, logins), *(grant.sql for grant in needed)]
    # Before rights are granted: an owner's own go to the next owner. And once more what is made after.
    return [*made, *handed_over, *granted, *afterwards, *handed_over]


def locks(state: SiteState) -> list[str]:
    """Tables with triggers come first, as users lock them before the tables that capture writes and reads: else both
    would wait. So do those whose triggers go: nobody writes them while the log takes over."""
    captured = (
        each
        for each in state.shadows()
        if each.marks is None
        and (known := state.registered.get(each.name))
        and not (each.by_log and known.by_log)
    )
    tables = [shadow.table.sql for shadow in captured]
    return [f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE"] if tables else []


def surplus_rights(connection: Connection, state: SiteState, logins: Logins) -> Iterator[str]:
    """The logins' rights on Concord's own objects beyond those that links need, each one line; for `provision
    --check`."""
    needed = needed_grants(state, logins, state.wanted)
    return surplus.problems(connection, state.site, needed, logins)


def as_installer(
    connection: Connection,
    state: SiteState,
    reader: str,
    applier: str,
    snapshots: Sequence[str] = (),
    afterwards: Sequence[str] = (),
) -> list[str]:
    """The same without what would grant what the logins have already, and this installer has no right to grant."""
    needed = needed_grants(state, Logins(reader, applier), state.wanted)
    lacked = privileges.missing(connection, needed)
    # Of Concord's own all is granted: the installer acts as its owner by then, and what is surplus was taken before.
    others = (grant for grant in needed if grant not in lacked and grant.name[0] not in SCHEMAS)
    to_give = {grant: grant.by(state.facts.user) for grant in others}
    not_ours = privileges.missing(connection, list(to_give.values()))
    granted = {grant.sql for grant, right in to_give.items() if right in not_ours}
    made = statements(state, reader, applier, snapshots, afterwards)
    return [*locks(state), *(statement for statement in made if statement not in granted)]


def provision(
    connection: Connection,
    state: SiteState,
    reader: str,
    applier: str,
    snapshots: Sequence[str] = (),
    afterwards: Sequence[str] = (),
    log: SiteLog | None = None,
) -> set[tuple[str, str]]:
    """Run the statements in one transaction. `log`: of a site whose log is read, or was until now; it is begun before,
    read to its end in between, and ended after.

    Returns synchronization and table where the common history is no longer proven: both must be initialized again.

    Raises ProvisioningRefused; then nothing was written.
    """
    try:
        made = as_installer(connection, state, reader, applier, snapshots, afterwards)
        if log is not None:
            log.begin(connection)
        held = locks(state)
        with connection.transaction():
            run(connection, "SET LOCAL lock_timeout = '10s'", *held, *(log.locks if log is not None else ()))
            proven = registration.proven(connection) if state.facts.provisioned_as is not None else set()
            if log is not None:
                log.read_to_the_end()
            for statement in made[len(held) :]:
                run(connection, statement)
            if log is not None:
                run(connection, *log.statements())
            unproven = proven - registration.proven(connection)
        if log is not None:
            log.end()
        return unproven
    except psycopg.Error as error:
        raise ProvisioningRefused(f"{_advice(connection, state, error)}; nothing was written") from error


def _advice(connection: Connection, state: SiteState, error: psycopg.Error) -> str:
    site, said = state.site, str(error).strip().splitlines()[0]
    if error.sqlstate == "42501":
        return f"{site}: {said}; a superuser gives {state.facts.user} this right"
    if error.sqlstate == "55P03":
        tables = [table.oid for table in state.tables.values()]
        held = lock_holders.described(connection, tables, readers=True) or "it has let go of it since"
        return (
            f"{site}: a long transaction holds a table that triggers must be added to ({held}); try again when it has"
            " ended"
        )
    return f"{site}: {said}"


def check(state: SiteState, refused: Collection[str] = ()) -> Iterator[str]:
    """Objects missing or altered since the site was provisioned, each one line; silent when all is well.

    A `refused` table that is not provisioned, or gone, is none of them: its refusal says why.
    """
    if state.facts.provisioned_as is None:
        yield f"{state.site}: is not provisioned; run `provision`"
        return
    if state.facts.provisioned_identity != state.facts.identity:
        yield (
            f"{state.site}: is not the database that was provisioned (restored, cloned or failed over); mend the"
            f" connection, or {incarnation.brought_back(state.site)}"
        )
    if state.facts.format < FORMAT:
        yield f"{state.site}: was provisioned by an earlier version of Concord; run `provision`"
    for name, lines in altered(state).items():
        there = name in state.registered and any(
            state.table(each) for each in state.wanted if each.name == name
        )
        if there or name not in refused:
            yield from lines
    yield from (f"{state.site}: {grant.lacked}" for grant in state.lacked)


def remove(connection: Connection, state: SiteState) -> list[str]:
    """Statements that take Concord off a site; the replicated tables and their rows stay."""
    taken = [
        f"DROP TRIGGER IF EXISTS {quote(trigger)} ON {table.sql}"
        for table in state.tables.values()
        for trigger in table.triggers
    ]
    tracked = [each.tracking for each in state.registered.values()]
    views = [ownership.view_dropped(each["view"]) for each in tracked if "view" in each]
    return [*views, *taken, by_log.published_alone(()), *control.removal(), owner.removal(state.owner)]


def remove_now(connection: Connection, state: SiteState) -> None:
    """Run `remove` in one transaction."""
    try:
        with connection.transaction():
            run(connection, "SET LOCAL lock_timeout = '10s'", *remove(connection, state))
    except psycopg.Error as error:
        raise in_our_words(error, state.site) from error


#: The triggers that `provision` takes off tables that are not in the configuration, by the beginnings of their names.
_TAKEN_OFF = ("RI_concord_", "concord_own_rows_", "zzz_concord_version_")


def held_by_capture(connection: Connection, tables: Collection[int]) -> set[int]:
    """Of these tables, by oid, those that would lose something if `provision` ran without them: a publication of
    Concord's, or triggers. Triggers of links stay on a table that is left out."""
    taken_off = " OR ".join(f"starts_with(t.tgname::text, {literal(each)})" for each in _TAKEN_OFF)
    found = rows(
        connection,
        f"""
SELECT c.oid::bigint FROM pg_class c WHERE c.oid = ANY ({literal("{" + ",".join(map(str, tables)) + "}")}::oid[])
   AND (EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
                 WHERE r.prrelid = c.oid AND starts_with(p.pubname::text, 'concord'))
        OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND ({taken_off})))""",
    )
    return {oid for (oid,) in found}


#: Of what pg_relation_is_updatable says: it takes UPDATE, INSERT or DELETE.
_WRITABLE = 1 << 2 | 1 << 3 | 1 << 4


def writable_elsewhere(connection: Connection, applier: str, replayed: Collection[int] = ()) -> list[str]:
    """Tables and views outside Concord's own that the applier may write, if only some of their columns, although no
    link does; for `provision --check`. A replication writes the `replayed` ones, by oid. The acts of a function with
    the rights of its owner are not seen."""
    role = literal(applier)
    writes = f"has_table_privilege({role}, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    found = rows(
        connection,
        f"""
SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE (c.relkind IN ('r', 'p', 'f') OR c.relkind = 'v' AND pg_relation_is_updatable(c.oid, true) & {_WRITABLE} <> 0)
   AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'concord', 'concord_staging')
   AND c.oid <> ALL ({literal("{" + ",".join(map(str, replayed)) + "}")}::oid[])
   AND NOT EXISTS (SELECT 1 FROM concord.replicated_table r WHERE to_regclass(r.relation) = c.oid)
   AND NOT EXISTS (SELECT 1 FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'concord_snapshot')
   AND ({writes} OR has_any_column_privilege({role}, c.oid, 'INSERT, UPDATE')) ORDER BY 1""",
    )
    return [name for (name,) in found]
