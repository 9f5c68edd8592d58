"""Every reason not to make a site an end of its replications, each about the site or some of its tables."""

from __future__ import annotations

from collections.abc import Iterator

from concord.databases.contract.refusal import Refusal, of_site, of_table
from concord.databases.postgresql.calls import signature
from concord.databases.postgresql.facts import application_triggers, ownership, privileges
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, one, rows
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.log import publication
from concord.databases.postgresql.operations import triggers
from concord.databases.postgresql.queued import version_columns
from concord.databases.postgresql.replication import history_table
from concord.databases.postgresql.replication.provision import Replications
from concord.databases.postgresql.replication.tables import column_problems, filter_problems
from concord.databases.postgresql.sites import grants, log_problems, own_rows, preflight
from concord.jobs.kept_history import KeptHistory
from concord.jobs.replication import ReplicationDefinition
from concord.tables.replication_set import ReplicatedTable


def refusals(of: Replications, connection: Connection, log_reader: str, applier: str) -> Iterator[Refusal]:
    """Of one site."""
    for each in of.replications:
        for wanted in each.tables:
            history = each.history.get(wanted.name) if each.subscriber == of.site else None
            lines = _table_refusals(of, wanted, each.version_column.get(wanted.name), history)
            yield from of_table(wanted.name, lines)
        for wanted, table in of.existing(each):
            yield from of_table(wanted.name, _existing_refusals(of, connection, each, wanted, table))
    names = {table.name: wanted.name for each in of.replications for wanted, table in of.existing(each)}
    compared = of.replayed_into(compared=True)
    for name, line in application_triggers.refusals(connection, of.site, compared):
        yield from of_table(names[name], [line])
    yield from _publication_refusals(of, connection, log_reader)
    for name, line in triggers.problems(connection, of.captured):
        yield from of_table(names[name], [f"{of.site}: {line}"])
    yield from of_site(_procedure_refusals(of, connection, applier))


def _table_refusals(
    of: Replications, wanted: ReplicatedTable, version: str | None, history: KeptHistory | None
) -> Iterator[str]:
    name = wanted.at_site(of.site)
    table = of.tables.get(name)
    if table is None:
        yield f"{of.site}: {name} does not exist, or the installer may not see it; create it or correct its name"
        return
    chosen = column_problems(of.site, wanted, table)
    key = table.key_of(wanted.key_at(of.site))
    versions = () if version is None else version_columns.problems(table, version, key)
    problems = (*preflight.kind_problems(table), *preflight.cast_problems(table.columns), *versions)
    yield from (f"{of.site}: {name} {problem}" for problem in (*problems, *chosen))
    if history is not None:
        yield from (f"{of.site}: {line}" for line in history_table.own_problems(table, history))
    if not key:
        yield f"{of.site}: {name} has no primary key; name its `key` in the replication set"
    for unique in table.deferrable_unique:
        yield f"{of.site}: {name} has a deferrable unique constraint {unique}; make it NOT DEFERRABLE"


def _existing_refusals(
    of: Replications,
    connection: Connection,
    replication: ReplicationDefinition,
    wanted: ReplicatedTable,
    table: Table,
) -> Iterator[str]:
    yield from own_rows.problems(connection, of.site, wanted, table)
    if replication.replayed_at(of.site):
        yield from added_rows.problems(connection, of.site, wanted)
        uncompared = preflight.uncompared_keys(table, wanted.key_at(of.site))
        yield from (f"{of.site}: {table.name} {problem}" for problem in uncompared)
    if replication.published_by(of.site):
        unfiltered = filter_problems(of.site, wanted, table)
        yield from (f"{of.site}: {table.name} {line}" for line in unfiltered)


def _publication_refusals(of: Replications, connection: Connection, log_reader: str) -> Iterator[Refusal]:
    published = of.published()
    for publication_name, tables in published.items():
        for name, line in publication.identity_problems(connection, publication_name, tables, published):
            yield from of_table(name, [f"{of.site}: {line}"])
    for publication_name, owner in rows(connection, ownership.publishers(published)):
        yield Refusal(f"{of.site}: {ownership.not_concords(publication_name, owner)}")
    if published:
        yield from of_site(_log_refusals(of, connection, log_reader))


def _log_refusals(of: Replications, connection: Connection, log_reader: str) -> Iterator[str]:
    (level,) = one(connection, "SHOW wal_level")
    if level != "logical":
        yield (
            f"{of.site}: wal_level is {level}; a publisher needs ALTER SYSTEM SET wal_level = logical and a"
            " restart of the server"
        )
    if not log_reader:
        yield f"{of.site}: it publishes; name the connection of a login with REPLICATION as its log_reader"
    elif not log_problems.may_read_logs(connection, log_reader):
        yield (
            f"{of.site}: the login {log_reader} has no REPLICATION; a superuser gives it (ALTER ROLE …"
            " REPLICATION). Such a login reads every table of the server: let pg_hba.conf admit it from here alone"
        )


def _procedure_refusals(of: Replications, connection: Connection, applier: str) -> Iterator[str]:
    """Procedures that cannot be called here, and those that the applier may not call."""
    called = [each for each in of.replications if each.subscriber == of.site]
    carried = [procedure for each in called for procedure in each.procedures]
    wrong = list(signature.problems(connection, dict.fromkeys([*of.carried, *carried])))
    yield from (f"{of.site}: {line}" for line in wrong)
    (installer,) = one(connection, "SELECT current_user")
    for grant in () if wrong else grants.of_procedures(carried, applier):
        lacked = privileges.missing(connection, [grant])
        if lacked and privileges.missing(connection, [grant.by(installer)]):
            yield f"{of.site}: {lacked[grant].lacked}"
