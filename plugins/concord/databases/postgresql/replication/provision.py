"""The needs of replications at one site: publications or triggers of its tables, and rights to read and to replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from concord.databases.postgresql.calls import call_objects
from concord.databases.postgresql.facts import application_triggers, interruptions, ownership
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, one
from concord.databases.postgresql.log import generated_columns, publication
from concord.databases.postgresql.log.published import PublishedTable
from concord.databases.postgresql.operations import kept, triggers
from concord.databases.postgresql.queued import (
    amounts,
    compensation,
    version_columns,
    version_tables,
)
from concord.databases.postgresql.replication.tables import filter_problems, published_table
from concord.jobs.replication import ReplicationDefinition
from concord.tables.replication_set import NotOwned, ReplicatedTable, TableName


@dataclass(frozen=True, slots=True)
class Replications:
    """One site's replications, and its tables of them, as far as they exist."""

    site: str
    replications: tuple[ReplicationDefinition, ...]
    tables: Mapping[TableName, Table]
    database: str = ""

    def published(self) -> dict[str, list[PublishedTable]]:
        """By publication: the tables that exist, have a key, and can be filtered as wanted; the others are refused."""
        made: dict[str, list[PublishedTable]] = {}
        mine = [each for each in self.replications if each.published_by(self.site) and not each.by_triggers]
        whole = {
            table.oid
            for each in mine
            for wanted, table in self.existing(each)
            if each.compares(wanted) or wanted.where is not None or wanted.joins_values_of(self.site)
        }
        # Those that need the most of it come last.
        for each in sorted(mine, key=lambda one: one.both_ways):
            made[publication.publication_name(each.replication_set)] = [
                published_table(
                    self.site, wanted, table, images=each.compares(wanted), shared=table.oid in whole
                )
                for wanted, table in self.existing(each)
                if table.key_of(wanted.key_at(self.site))
                and not list(filter_problems(self.site, wanted, table))
            ]
        return made

    @property
    def captured(self) -> list[Table]:
        """The tables whose operations triggers keep."""
        return list(
            {table.oid: table for each in self._by_triggers for _, table in self.existing(each)}.values()
        )

    @property
    def _by_triggers(self) -> list[ReplicationDefinition]:
        return [each for each in self.replications if each.published_by(self.site) and each.by_triggers]

    @property
    def _versioned(self) -> list[version_columns.Versioned]:
        """The tables that have a version column, each with its name; users of both sites write them."""
        found = {
            (table.oid, column): (table, column)
            for each in self.replications
            for wanted, table in self.existing(each)
            if (column := each.version_column.get(wanted.name))
        }
        return list(found.values())

    @property
    def replayed(self) -> list[int]:
        """The tables that a replication writes here, by oid."""
        mine = [each for each in self.replications if each.replayed_at(self.site)]
        return [table.oid for each in mine for _, table in self.existing(each)]

    def replayed_into(self, *, compared: bool) -> dict[TableName, Table]:
        """The tables that a replication writes here, by whether it compares their rows. Those of queued updates are
        captured, too, and looked at with them."""
        return {
            table.name: table
            for each in self.replications
            for wanted, table in self.existing(each)
            if each.replayed_at(self.site) and not each.queued and each.compares(wanted) is compared
        }

    def existing(self, replication: ReplicationDefinition) -> Iterator[tuple[ReplicatedTable, Table]]:
        """The tables of a replication that are here, each as wanted and as it is."""
        for wanted in replication.tables:
            if table := self.tables.get(wanted.at_site(self.site)):
                yield wanted, table

    @property
    def numbered(self) -> list[ReplicatedTable]:
        """The tables that users of both sites write, and whose sequences may hand out one number twice."""
        both = [each for each in self.replications if each.both_ways]
        return [wanted for each in both for wanted, _ in self.existing(each)]

    @property
    def altered(self) -> list[TableName]:
        """The tables whose owners alone may publish them, or give them triggers; and sequences that they move."""
        found = [
            name
            for each in self.replications
            for wanted, table in self.existing(each)
            if each.published_by(self.site) or wanted.not_owned is NotOwned.REFUSE
            for name in (table.name, *(table.sequences if each.both_ways else ()))
        ]
        return list(dict.fromkeys(found))

    def deviating(self, connection: Connection) -> list[str]:
        """The publications that are to be made or changed."""
        return [
            name
            for name, tables in self.published().items()
            if not publication.is_known(connection, name) or any(self._deviations(connection, name, tables))
        ]

    def _deviations(
        self, connection: Connection, name: str, tables: Sequence[PublishedTable]
    ) -> Iterator[str]:
        found = publication.find(connection, name)
        brought = generated_columns.as_published(connection, tables)
        return publication.deviations(connection, found, brought, self._own(name))

    @property
    def carried(self) -> tuple[TableName, ...]:
        """The procedures whose calls leave this site."""
        mine = [each for each in self.replications if each.published_by(self.site)]
        return tuple(dict.fromkeys(procedure for each in mine for procedure in each.procedures))

    def _own(self, name: str) -> publication.Own:
        """Concord's own tables in a publication: versions, where updates are queued, and calls."""
        mine = [
            each for each in self.replications if publication.publication_name(each.replication_set) == name
        ]
        wanted = [table for each in mine if each.queued for table in each.tables]
        calls = (call_objects.SQL,) if any(each.procedures for each in mine) else ()
        level = any(each.both_ways for each in mine)
        if not wanted:
            return publication.Own(plain=calls, level=level)
        return publication.Own(
            tuple(dict.fromkeys(version_tables.relations(wanted))), (compensation.SQL, *calls), level
        )

    def statements(self, connection: Connection) -> Iterator[str]:
        """Idempotent; they need the shadow tables."""
        yield from call_objects.statements(self.carried)
        published, deviating = self.published(), self.deviating(connection)
        for name, tables in published.items():
            source, own = interruptions.published(name), publication.own_tables(self._own(name))
            yield ownership.refused_publication(name)
            yield from interruptions.counted(source, [each.table.oid for each in tables], own)
            if name in deviating:
                known = publication.is_known(connection, name)
                whole = publication.whole_identities(publication.find(connection, name))
                yield from publication.statements(name, tables, known, whole, self._own(name))
                yield from generated_columns.option(connection, name, tables)
            yield from interruptions.remembered(source)
        yield from call_objects.removal(connection, self.carried)
        yield from interruptions.counted(triggers.SOURCE, [each.oid for each in self.captured])
        yield from triggers.statements(connection, self.captured)
        yield from interruptions.remembered(triggers.SOURCE)
        yield from version_columns.statements(connection, self._versioned)
        mine = self._by_triggers
        yield from kept.only([name for each in mine for name in (each.name, *each.consumers)])

    def notices(self, connection: Connection) -> Iterator[str]:
        """Each one line: a log that nothing bounds while no run looks at it (S4-124), and amounts that may be lost."""
        if self.published() and one(connection, "SHOW max_slot_wal_keep_size") == ("-1",):
            yield (
                f"{self.site}: it publishes, and max_slot_wal_keep_size is -1: a replication that does not run fills"
                " its disk; ALTER SYSTEM SET max_slot_wal_keep_size = '20GB', somewhat more than max_delta, and"
                " SELECT pg_reload_conf()"
            )
        copied, compared = (self.replayed_into(compared=each) for each in (False, True))
        yield from application_triggers.changing(connection, self.site, copied)
        yield from application_triggers.notices(connection, self.site, {**copied, **compared})
        for each in self.replications:
            for _, table in self.existing(each) if each.queued and each.publisher == self.site else ():
                yield from amounts.notices(self.site, each.name, str(table.name), table.columns)

    def check(self, connection: Connection) -> Iterator[str]:
        """Whatever its publications and triggers lack."""
        for name, tables in self.published().items():
            wrong = list(self._deviations(connection, name, tables))
            for line in wrong or self._interrupted(connection, interruptions.published(name)):
                yield f"{self.site}: {line}; run `provision`"
        for line in call_objects.deviations(connection, self.carried):
            yield f"{self.site}: {line}; run `provision`"
        versions = version_columns.deviations(connection, self._versioned)
        wrong = triggers.deviations(connection, self.captured)
        for line in (*(wrong or self._interrupted(connection, triggers.SOURCE)), *versions):
            yield f"{self.site}: {line}; run `provision`"

    def _interrupted(self, connection: Connection, source: interruptions.Source) -> list[str]:
        """A site of an older format has no memory of them yet."""
        if not interruptions.are_remembered(connection):
            return []
        return list(interruptions.deviations(interruptions.read(connection, source)))


def relations(replications: Sequence[ReplicationDefinition], site: str) -> list[TableName]:
    """Their tables at this site."""
    return list(dict.fromkeys(table.at_site(site) for each in replications for table in each.tables))
