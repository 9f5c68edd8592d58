"""A site of PostgreSQL as provisioning meets it: its catalogue, its snapshots, its sequences, and what follows."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain

import psycopg

from concord.databases.contract.refusal import Refusal
from concord.databases.contract.surveyed_site import Installation, Lacked
from concord.databases.postgresql.capture import notify
from concord.databases.postgresql.capture.shadow_table import Shadow
from concord.databases.postgresql.facts import others_functions, privileges
from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.facts.privileges import Grant
from concord.databases.postgresql.hooks import added_rows
from concord.databases.postgresql.ledger import retention
from concord.databases.postgresql.provision import admission, script, site_log, site_refusals, site_statements
from concord.databases.postgresql.provision.admission import Admission
from concord.databases.postgresql.provision.site_log import SiteLog
from concord.databases.postgresql.replication import provision as replay_provision
from concord.databases.postgresql.replication import refusals as replication_refusals
from concord.databases.postgresql.replication.needed_grants import needed_grants
from concord.databases.postgresql.replication.provision import Replications
from concord.databases.postgresql.sites import grants, identities, log_problems, own_rows, owner
from concord.databases.postgresql.sites import state as site_state
from concord.databases.postgresql.sites.grants import Logins
from concord.databases.postgresql.sites.identities import SiteSequences
from concord.databases.postgresql.sites.own_rows import OwnRows
from concord.databases.postgresql.sites.state import SiteState
from concord.databases.postgresql.snapshots import provision as snapshot_provision
from concord.databases.postgresql.snapshots.provision import Ends
from concord.messages.errors import PrivilegeMissing, ProvisioningRefused
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.structure import Structure


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The site, through its installer's connection."""

    installation: Installation
    connection: Connection
    state: SiteState
    relations: Mapping[TableName, Table]  #: of its snapshots
    replications: Replications
    sequences: SiteSequences
    admission: Admission

    @property
    def site(self) -> str:
        return self.installation.site

    @property
    def identity(self) -> str:
        return self.state.facts.identity

    @property
    def clock_ahead(self) -> float:
        return self.state.facts.clock_ahead

    @property
    def lacked(self) -> Lacked:
        return _lacked(self.admission)

    @property
    def _logins(self) -> Logins:
        return Logins(self.installation.reader, self.installation.applier)

    def structure(self, wanted: ReplicatedTable) -> Structure | None:
        return self.state.structure(wanted)

    def refusals(self, sites: Sequence[Surveyed]) -> Iterator[Refusal]:
        """As far as the installer may look, where it lacks something: that comes first."""
        wanted, connection = self.installation, self.connection
        try:
            yield from site_refusals.of_links(connection, self.state, wanted.reader, wanted.applier)
            of_replications = (connection, wanted.log_reader, wanted.applier)
            yield from replication_refusals.refusals(self.replications, *of_replications)
            yield from site_refusals.of_log(connection, self.state, wanted, self.replications)
            yield from site_refusals.of_snapshots(connection, self.site, self._snapshots(sites))
            yield from identities.refusals(self.sequences)
        except psycopg.Error as error:
            if not self._may_not_look(error):
                yield Refusal(in_our_words(error, self.site).message)

    def _may_not_look(self, error: psycopg.Error) -> bool:
        """Does the installer lack a right for a reason that its admission names?"""
        named = self.admission.lacks or self.admission.problems
        return bool(named) and isinstance(error, psycopg.errors.InsufficientPrivilege)

    @property
    def _logged(self) -> list[Shadow]:
        """Its tables whose changes the log tells."""
        return list(log_problems.logged(self.state))

    def captured(self, tables: Collection[str]) -> set[str]:
        """Of these tables, those that a publication has, or triggers that `provision` takes off other tables.

        After an upgrade of Concord all that are provisioned: their triggers would stay those of the older version.
        """
        here = {**self.state.tables, **self.replications.tables}
        found = {each.name: here.get(each.at_site(self.site)) for each in self.installation.carried}
        oids = {name: table.oid for name, table in found.items() if table and name in tables}
        held = site_statements.held_by_capture(self.connection, list(oids.values()))
        older = self.state.registered.keys() if self.state.facts.format < FORMAT else ()
        return {name for name, oid in oids.items() if oid in held or name in older}

    @property
    def _log(self) -> SiteLog | None:
        return site_log.site_log(self.state, self.installation.installer, self.installation.reads_log)

    def _snapshots(self, sites: Sequence[Surveyed]) -> Iterator[Ends]:
        """Its snapshots, each with what the sites that answer have of it."""
        relations = {each.site: each.relations for each in sites}
        yield from (Ends.of(snapshot, relations) for snapshot in self.installation.snapshots)

    def _snapshot_statements(self, sites: Sequence[Surveyed]) -> list[str]:
        made = list[str]()
        for ends in self._snapshots(sites):
            if ends.snapshot.target == self.site:
                made += snapshot_provision.target_statements(ends, self.installation.applier)
        needed = [*self._snapshot_grants(sites), *self._replication_grants]
        lacked = privileges.missing(self.connection, needed)
        user = self.state.facts.user
        not_ours = privileges.missing(self.connection, [each.by(user) for each in needed])
        # Everybody may call a procedure, unless its owner says otherwise; and only the owner could say it again.
        held = [
            each
            for each in needed
            if each not in lacked and (each.kind is privileges.Kind.PROCEDURE or each.by(user) in not_ours)
        ]
        return [*made, *(each.sql for each in needed if each not in held)]

    @property
    def _replication_grants(self) -> list[Grant]:
        log_reader, database = self.installation.log_reader, self.state.facts.database
        logs_in = [grants.connect(log_reader, database)] if self._logged and log_reader else []
        carried = self.installation.carried
        of_hooks = added_rows.needed_grants(self.connection, self.site, carried, self.installation.applier)
        return [*needed_grants(self.replications, self._logins, log_reader), *logs_in, *of_hooks]

    def _snapshot_grants(self, sites: Sequence[Surveyed]) -> list[Grant]:
        found = [
            snapshot_provision.needed_grants(ends, self.site, self._logins) for ends in self._snapshots(sites)
        ]
        return list(dict.fromkeys(chain.from_iterable(found)))

    def _afterwards(self, sites: Sequence[Surveyed]) -> list[str]:
        """The objects that need the shadow tables, or more than one site. They are announcements where a
        synchronization says `watch`, sequences, for tables whose configuration says `identity`, and publications."""
        wanted, shadows = self.installation, self.state.shadows()
        announcements = notify.statements(self.connection, shadows, wanted.announced, wanted.applier)
        kept = retention.keep(wanted.conflicts_kept)
        numbers = identities.statements([each.sequences for each in sites], self.sequences)
        published = self.replications.statements(self.connection)
        refused = own_rows.statements(self.connection, self._own_rows())
        return [kept, *announcements, *numbers, *published, *refused]

    def _own_rows(self) -> Sequence[OwnRows]:
        """The tables whose users change none but the site's own rows."""
        replayed = [table for each in self.installation.replications for table in each.tables]
        tables = {**self.state.tables, **self.replications.tables}
        return own_rows.own_rows(self.site, self.installation.tables, replayed, tables)

    def provision(self, sites: Sequence[Surveyed]) -> set[tuple[str, str]]:
        roles = (self.installation.reader, self.installation.applier)
        snapshots, afterwards = self._snapshot_statements(sites), self._afterwards(sites)
        return site_statements.provision(
            self.connection, self.state, *roles, snapshots, afterwards, self._log
        )

    def script(self, sites: Sequence[Surveyed]) -> str:
        if self._log is not None:
            raise ProvisioningRefused(
                f"{self.site}: no script begins or ends to read its log, for which a slot is made outside of"
                " transactions; run `provision` itself"
            )
        roles = (self.installation.reader, self.installation.applier)
        snapshots, afterwards = self._snapshot_statements(sites), self._afterwards(sites)
        made = site_statements.as_installer(self.connection, self.state, *roles, snapshots, afterwards)
        return script.for_the_installer(self.state.facts.user, made)

    def check(self, sites: Sequence[Surveyed], refused: Collection[str]) -> Iterator[str]:
        try:
            yield from self._deviations(sites, refused)
        except psycopg.Error as error:
            if not self._may_not_look(error):
                raise in_our_words(error, self.site) from error

    def _deviations(self, sites: Sequence[Surveyed], refused: Collection[str]) -> Iterator[str]:
        yield from site_statements.check(self.state, refused)
        yield from snapshot_provision.check(self.connection, self.site, self.installation.snapshots)
        yield from self.replications.check(self.connection)
        needed = [*self._snapshot_grants(sites), *self._replication_grants]
        lacked = privileges.missing(self.connection, needed)
        yield from (f"{self.site}: {grant.lacked}" for grant in lacked.values())
        yield from self._otherwise_kept()
        if self.state.facts.provisioned_as is not None:
            yield from self._otherwise_provisioned()
        yield from identities.deviations([self.sequences])

    def _otherwise_kept(self) -> Iterator[str]:
        if self.state.facts.format == FORMAT:
            wanted, kept = self.installation.conflicts_kept, retention.kept_at(self.connection)
            if kept != wanted:
                yield (
                    f"{self.site}: keeps conflicts for {retention.in_words(kept)}, and the configuration says"
                    f" {retention.in_words(wanted)}; run `provision`"
                )

    def _otherwise_provisioned(self) -> Iterator[str]:
        applier = self.installation.applier
        yield from notify.check(self.connection, self.site, self._announced())
        yield from own_rows.check(self.connection, self.site, self._own_rows())
        if self.state.facts.format == FORMAT:
            yield from log_problems.deviations(self.connection, self.site, self._logged)
        yield from owner.deviations(owner.read(self.connection, self.state.facts, self.state.owner))
        yield from site_statements.surplus_rights(self.connection, self.state, self._logins)
        added = added_rows.relations(self.connection, self.site, self.installation.carried)
        written = [*self.replications.replayed, *added]
        for table in site_statements.writable_elsewhere(self.connection, applier, written):
            yield f"{self.site}: the applier {applier} may write {table}, which no link does; revoke it"

    def _announced(self) -> list[Table]:
        """The tables of whose commits some synchronization wants to hear, those that are gone left out."""
        wanted = {each.name: self.state.table(each) for each in self.state.wanted}
        return [table for name, table in wanted.items() if table and name in self.installation.announced]

    def notices(self) -> Iterator[str]:
        yield from site_statements.notices(self.state, self.connection)
        relations = {**self.state.tables, **self.relations}
        yield from others_functions.notices(self.connection, self.site, relations)
        yield from self.replications.notices(self.connection)
        yield from log_problems.notices(self.connection, self.site, self._logged)

    def remove(self) -> None:
        log = self._log
        site_statements.remove_now(self.connection, self.state)
        if log is not None:
            log.drop()


def survey(installation: Installation, stack: ExitStack) -> Surveyed:
    """Raises a ConcordError when the site cannot be reached or read; its `lacked` is what a superuser gives."""
    connection = stack.enter_context(connect(installation.installer, "concord provision"))
    try:
        return _look_at(connection, installation)
    except psycopg.Error as error:
        raise in_our_words(error, installation.site) from error


def _look_at(connection: Connection, installation: Installation) -> Surveyed:
    site, logins = installation.site, Logins(installation.reader, installation.applier)
    state = site_state.read_catalogue(connection, site, installation.tables, time.time())
    owner.refuse_strangers(connection, state.facts, state.owner)
    relations = read_tables(connection, snapshot_provision.relations(installation.snapshots, site))
    replications = _replications(connection, installation, state)
    copies = [Ends.of(each, {site: relations}) for each in installation.snapshots]
    wanted = admission.Wanted(logins, installation.log_reader, copies, replications)
    admitted = admission.read(connection, state, wanted)
    try:
        state = site_state.with_memory(connection, state, logins)
        numbered = [*state.wanted, *replications.numbered]
        numbers = identities.read(connection, site, numbered, [*state.tables, *replications.tables])
    except (psycopg.errors.InsufficientPrivilege, PrivilegeMissing):
        lacked = _lacked(admitted)
        if not (lacked.refusal or lacked.problems):
            raise
        said = [lacked.refusal, *(each.text for each in lacked.problems)]
        raise PrivilegeMissing("\n".join(filter(None, said)), lacked=lacked) from None
    return Surveyed(installation, connection, state, relations, replications, numbers, admitted)


def _replications(connection: Connection, installation: Installation, state: SiteState) -> Replications:
    site, wanted = installation.site, installation.replications
    tables = read_tables(connection, replay_provision.relations(wanted, site))
    return Replications(site, wanted, tables, state.facts.database)


def number_notices(sites: Sequence[Surveyed]) -> Iterator[str]:
    """Sequences whose numbers clash or run out."""
    return identities.notices([each.sequences for each in sites])


def _lacked(admitted: Admission) -> Lacked:
    lacks = bool(admitted.lacks)
    return Lacked(
        admitted.refusal if lacks else "",
        admitted.problems,
        script.for_a_superuser(admitted) if lacks else "",
    )
