"""Why a site's log cannot tell what its users change, or does not tell it as it was provisioned (S1-32 b)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from concord.databases.contract.quoting import literal, quote
from concord.databases.contract.surveyed_site import Installation
from concord.databases.postgresql.capture import by_log
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import ownership
from concord.databases.postgresql.facts.connection import Connection, connect, one, rows
from concord.databases.postgresql.facts.own_schema import IDENTITY, PUBLICATION
from concord.databases.postgresql.log import capture_slot, publication
from concord.databases.postgresql.log.publication import Found
from concord.databases.postgresql.sites.site_facts import SiteFacts
from concord.databases.postgresql.sites.state import SiteState
from concord.messages.errors import ConcordError, PrivilegeMissing

#: Query: the tables, by their names in the replication set, whose log has a gap.
INTERRUPTED = (
    f"SELECT r.name FROM concord.replicated_table r WHERE {by_log.interrupted('to_regclass(r.relation)')}"
)


def logged(state: SiteState) -> Iterator[Shadow]:
    """The site's tables whose changes the log reports, as far as they exist."""
    for wanted in state.wanted:
        table = state.table(wanted)
        if table is not None and state.site in wanted.by_log:
            yield Shadow.of(wanted, state.site, table)


def refusals(connection: Connection, site: str, log_reader: str) -> Iterator[str]:
    """Every reason not to read a site's log for links, each one line."""
    (level,) = one(connection, "SHOW wal_level")
    if level != "logical":
        yield (
            f"{site}: wal_level is {level}; capture: log needs ALTER SYSTEM SET wal_level = logical and a restart of"
            " the server, or write capture: triggers"
        )
    if not log_reader:
        yield (
            f"{site}: its changes are read from the log; name as its log_reader the connection of a login with"
            " REPLICATION"
        )
    elif not may_read_logs(connection, log_reader):
        yield (
            f"{site}: the login {log_reader} has no REPLICATION; a superuser gives it (ALTER ROLE {quote(log_reader)}"
            " REPLICATION). Such a login reads every table of the server: let pg_hba.conf admit it from here alone"
        )
    for name, owner in rows(connection, ownership.publishers([PUBLICATION])):
        yield f"{site}: {ownership.not_concords(name, owner)}"


def may_read_logs(connection: Connection, log_reader: str) -> bool:
    """Has the login REPLICATION?"""
    found = rows(connection, f"SELECT rolreplication FROM pg_roles WHERE rolname = {literal(log_reader)}")
    return found == [(True,)]


def login_refusals(connection: Connection, facts: SiteFacts, wanted: Installation) -> Iterator[str]:
    """Why the log's reader could not make its slot, tried by logging in. `provision` may still give it CONNECT."""
    login, slot = wanted.reads_log, capture_slot.name_at(connection)
    if login is None or not may_read_logs(connection, wanted.log_reader):
        return
    try:
        with connect(login, "concord provision") as there:
            (identity,) = one(there, IDENTITY)
            if identity != facts.identity:
                yield (
                    f"{facts.site}: its log_reader leads to another database than its installer; correct"
                    f" {login.known_as}"
                )
    except PrivilegeMissing:
        pass
    except ConcordError as error:
        yield f"{facts.site}: its log_reader cannot log in: {error.message}"
    full = rows(
        connection,
        "SELECT current_setting('max_replication_slots') FROM pg_replication_slots"
        " HAVING count(*) >= current_setting('max_replication_slots')::int"
        f" AND count(*) FILTER (WHERE slot_name = {literal(slot)}) = 0",
    )
    for (most,) in full:
        yield (
            f"{facts.site}: all of the server's replication slots are in use (max_replication_slots is {most}), and"
            " capture: log needs one; drop one that nobody reads, or raise the number and restart the server"
        )


def table_refusals(
    connection: Connection, site: str, shadow: Shadow, whole: Collection[int]
) -> Iterator[str]:
    """Every reason why the log does not tell a table's changes, each one line.

    `whole`: the tables, by oid, that a replication publishes with their rows as they were.
    """
    yield from (f"{site}: {shadow.table.name} {line}" for line in _identity(connection, shadow))
    if shadow.table.oid in whole:
        yield (
            f"{site}: {shadow.table.name} is published by a replication with its rows as they were, where"
            " PostgreSQL takes no publication of keys alone; write capture: triggers"
        )


def _identity(connection: Connection, shadow: Shadow) -> Iterator[str]:
    """The log has of a deleted row what its replica identity says: that must be the key, all of it and no more."""
    identity, full = one(
        connection,
        f"""
SELECT (SELECT array_agg(a.attname::text) FROM pg_index i JOIN pg_attribute a
            ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
         WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary
                                           WHEN 'i' THEN i.indisreplident ELSE false END),
       c.relreplident = 'f'
  FROM pg_class c WHERE c.oid = {shadow.table.oid}""",
    )
    if full:
        yield (
            "has the REPLICA IDENTITY FULL, with which PostgreSQL would refuse its updates once its key alone is"
            " published; say ALTER TABLE … REPLICA IDENTITY DEFAULT, or write capture: triggers"
        )
    elif set(identity or ()) != set(shadow.key):
        yield (
            f"has another replica identity than its replication key ({', '.join(shadow.key)}); make that the primary"
            " key, or say ALTER TABLE … REPLICA IDENTITY USING INDEX …"
        )


def deviations(connection: Connection, site: str, shadows: Sequence[Shadow]) -> Iterator[str]:
    """Whatever keeps the log from being read, each one line; the site is provisioned."""
    if not shadows:
        return
    if (level := capture_slot.level(connection)) is None:
        yield f"{site}: its log is not read yet; run `provision`"
        return
    if why := capture_slot.standing(connection, level):
        yield (
            f"{site}: {why}; run `provision`, then `initialize NAME` for each synchronization that carries a table"
            " of the site"
        )
    published = publication.find(connection, PUBLICATION)
    gaps = {name for (name,) in rows(connection, INTERRUPTED)}
    for shadow in shadows:
        yield from (f"{site}: {shadow.table.name} {line}" for line in _identity(connection, shadow))
        if line := _unpublished(published, shadow) or (_WAS_UNPUBLISHED if shadow.name in gaps else ""):
            yield (
                f"{site}: {shadow.table.name} {line}, so that edits of its users are missing; run `provision`, then"
                " `initialize NAME` for each synchronization that carries it"
            )


_WAS_UNPUBLISHED = f"was not published by its key in {PUBLICATION} for a while"


def _unpublished(published: Found, shadow: Shadow) -> str:
    """The part of the table that the publication lacks; empty where it lacks nothing."""
    member = published.members.get(shadow.table.oid)
    if member is None or member.unlisted or set(member.columns) != set(shadow.key):
        return f"is not published by its key in {PUBLICATION}"
    if member.filtered:
        return f"has a row filter in {PUBLICATION}"
    return "" if published.whole else f"has other operations than all published in {PUBLICATION}"


def notices(connection: Connection, site: str, shadows: Sequence[Shadow]) -> Iterator[str]:
    """A log that nothing bounds while no link looks at it, and how much of it is kept."""
    if not shadows:
        return
    if one(connection, "SHOW max_slot_wal_keep_size") == ("-1",):
        yield (
            f"{site}: its log is kept until a link has read it, and max_slot_wal_keep_size is -1: where no link runs,"
            " it fills the disk; ALTER SYSTEM SET max_slot_wal_keep_size = '20GB', and SELECT pg_reload_conf()"
        )
    for kept, bytes_kept in rows(
        connection,
        "SELECT pg_size_pretty(k), k FROM (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS k"
        f" FROM pg_replication_slots WHERE slot_name = {literal(capture_slot.name_at(connection))}) x",
    ):
        if bytes_kept is not None and bytes_kept > _MUCH:
            yield f"{site}: {kept} of its log is kept for capture; run a link of the site, which reads it"


#: Bytes of log that are worth a word.
_MUCH = 1 << 30
