"""The rights that runs of replications need at one site, beside those of every link."""

from __future__ import annotations

from collections.abc import Iterator

from concord.databases.postgresql.facts import sequences
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.privileges import Grant
from concord.databases.postgresql.replication.provision import Replications
from concord.databases.postgresql.sites import grants
from concord.databases.postgresql.sites.grants import Logins
from concord.jobs.replication import ReplicationDefinition
from concord.tables.replication_set import ReplicatedTable


def needed_grants(of: Replications, logins: Logins, log_reader: str) -> list[Grant]:
    """Each once. `log_reader` is empty where no login reads the site's log."""
    return list(dict.fromkeys(_grants(of, logins, log_reader)))


def _grants(of: Replications, logins: Logins, log_reader: str) -> Iterator[Grant]:
    for each in of.replications:
        for wanted, table in of.existing(each):
            if each.published_by(of.site):
                yield from grants.of_snapshot_source(wanted.at_site(of.site), logins)
            if each.replayed_at(of.site):
                yield from _replayed(each, wanted, table, of.site, logins)
        if each.subscriber == of.site:
            yield from grants.of_procedures(each.procedures, logins.applier)
    if of.published() and log_reader:
        yield grants.connect(log_reader, of.database)


def _replayed(
    each: ReplicationDefinition, wanted: ReplicatedTable, table: Table, site: str, logins: Logins
) -> Iterator[Grant]:
    name, history = wanted.at_site(site), each.history.get(wanted.name)
    if history is None:
        yield from grants.of_snapshot_target(name, table.columns, logins)
    else:
        yield from grants.of_history(name, table.columns, logins, forgets=history.keep is not None)
    if each.both_ways:
        yield from sequences.rights_to_move(table.sequences, logins.applier)
    yield from grants.of_hook(wanted.hooks.get(site), logins.applier)
