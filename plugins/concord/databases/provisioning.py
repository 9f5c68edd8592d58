"""Provision several sites together: every problem of every site first, then each site in one transaction.

A site that does not answer is left out and named at the end; it never stops the others (S4-176).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain

import psycopg

from concord.databases import identity
from concord.databases.identity import SiteSequences
from concord.databases.postgresql.capture import notify
from concord.databases.postgresql.facts import others_functions, privileges
from concord.databases.postgresql.facts.catalogue import Table, read_tables
from concord.databases.postgresql.facts.own_schema import FORMAT
from concord.databases.postgresql.facts.privileges import Grant
from concord.databases.postgresql.facts.session import Connection, connect, in_our_words
from concord.databases.postgresql.ledger import retention
from concord.databases.postgresql.ledger.retention import in_words
from concord.databases.postgresql.provision import admission, script
from concord.databases.postgresql.provision import site_statements as site_provision
from concord.databases.postgresql.provision.admission import Admission
from concord.databases.postgresql.sites import owner, preflight
from concord.databases.postgresql.sites import state as site_state
from concord.databases.postgresql.sites.grants import Logins
from concord.databases.postgresql.sites.state import SiteState
from concord.databases.postgresql.snapshots import provision as snapshot_provision
from concord.databases.postgresql.snapshots.provision import Ends
from concord.jobs.site import Credentials
from concord.jobs.snapshot import SnapshotDefinition
from concord.messages.errors import ConcordError, PrivilegeMissing, ProvisioningRefused, SiteUnavailable
from concord.messages.pace import Meter, Tell, silent, told
from concord.tables.replication_set import ReplicatedTable, TableName
from concord.tables.structure import Structure, differences


@dataclass(frozen=True, slots=True)
class Installation:
    """The tables that one site is to carry, through which three logins (installer, reader, applier)."""

    site: str
    installer: Credentials
    reader: str
    applier: str
    tables: tuple[ReplicatedTable, ...]
    max_clock_skew: float = 60.0
    snapshots: tuple[SnapshotDefinition, ...] = ()  #: those of which this site is the source or the target
    conflicts_kept: timedelta = timedelta(days=30)
    announced: frozenset[str] = frozenset()  #: the tables of whose commits some synchronization wants to hear

    @property
    def logins(self) -> Logins:
        """The two that links use."""
        return Logins(self.reader, self.applier)


@dataclass(frozen=True, slots=True)
class _Surveyed:
    installation: Installation
    connection: Connection
    state: SiteState
    relations: Mapping[TableName, Table]  #: of its snapshots
    sequences: SiteSequences
    admission: Admission


@dataclass(frozen=True, slots=True)
class _Survey:
    """The sites that answer, and what was wrong with the others: none of them stops the rest (S4-176)."""

    reached: list[_Surveyed] = field(default_factory=list)
    failed: dict[str, ConcordError] = field(default_factory=dict)

    @property
    def sequences(self) -> list[SiteSequences]:
        return [each.sequences for each in self.reached]

    @property
    def shut_out(self) -> dict[str, Admission]:
        """By their sites, the installers among the failed that a superuser has to let look."""
        given = {site: error.facts.get("admission") for site, error in self.failed.items()}
        return {site: each for site, each in given.items() if isinstance(each, Admission)}

    @property
    def admissions(self) -> list[Admission]:
        """Of every installer that lacks something."""
        every = [*(each.admission for each in self.reached), *self.shut_out.values()]
        return [each for each in every if each.lacks or each.problems]

    @property
    def failures(self) -> list[str]:
        """One line a site, each beginning with its name."""
        return [
            error.message if error.message.startswith(f"{site}:") else f"{site}: {error.message}"
            for site, error in self.failed.items()
        ]

    def do(self, act: Callable[[_Surveyed], None], done: str) -> None:
        """Act at every site that answers, then name those where nothing was done; transient only if all are."""
        acted = []
        for each in self.reached:
            try:
                act(each)
                acted.append(each.installation.site)
            except ConcordError as error:
                self.failed[each.installation.site] = error
        self.name_the_failed(f"{done}: {', '.join(acted) or 'no site'}")

    def name_the_failed(self, done: str) -> None:
        """Raise for the sites where nothing was done, naming each once."""
        if self.failed:
            permanent = [type(error) for error in self.failed.values() if not error.transient]
            lines = "\n".join(f"  - {line}" for line in self.failures)
            raise (permanent or [SiteUnavailable])[0](f"{done}. Not done:\n{lines}")


@contextmanager
def _survey(installations: Sequence[Installation]) -> Iterator[_Survey]:
    """Every site looked at, through its installer."""
    with ExitStack() as stack:
        survey = _Survey()
        for each in installations:
            try:
                survey.reached.append(_look_at(each, stack))
            except ConcordError as error:
                survey.failed[each.site] = error
        yield survey


def _look_at(installation: Installation, stack: ExitStack) -> _Surveyed:
    """Raises a ConcordError when the site cannot be reached or read."""
    connection = stack.enter_context(connect(installation.installer, "concord provision"))
    site, logins = installation.site, installation.logins
    try:
        state = site_state.read_catalogue(connection, site, installation.tables, time.time())
        relations = read_tables(connection, snapshot_provision.relations(installation.snapshots, site))
        copies = [_ends(each, {site: relations}) for each in installation.snapshots]
        admitted = admission.read(connection, state, logins, copies)
        try:
            state = site_state.with_memory(connection, state, logins)
            numbers = identity.read(connection, site, state.wanted, list(state.tables))
        except (psycopg.errors.InsufficientPrivilege, PrivilegeMissing):
            if not admitted.lacks:
                raise
            raise PrivilegeMissing(admitted.refusal, admission=admitted) from None
    except psycopg.Error as error:
        raise in_our_words(error, site) from error
    return _Surveyed(installation, connection, state, relations, numbers, admitted)


def _problems(surveyed: Sequence[_Surveyed]) -> list[str]:
    found: list[str] = []
    for each in surveyed:
        found += _site_problems(each)
    skew = {each.installation.site: each.installation.max_clock_skew for each in surveyed}
    found += preflight.pair_problems([each.state.facts for each in surveyed], skew)
    found += [problem for each in surveyed for problem in _snapshot_problems(each, surveyed)]
    found += identity.refusals([each.sequences for each in surveyed])
    return list(dict.fromkeys([*found, *_differences(surveyed)]))


def _site_problems(each: _Surveyed) -> Iterator[str]:
    """As far as the installer may look, where it lacks something: that comes first."""
    wanted = each.installation
    try:
        yield from site_provision.problems(each.state, wanted.reader, wanted.applier, each.connection)
    except psycopg.errors.InsufficientPrivilege:
        if not each.admission.lacks:
            raise


def _snapshot_problems(each: _Surveyed, surveyed: Sequence[_Surveyed]) -> Iterator[str]:
    for ends in _snapshots(each, surveyed):
        if ends.snapshot.source == each.installation.site:
            yield from snapshot_provision.source_refusals(ends)
        else:
            yield from snapshot_provision.target_refusals(each.connection, ends)


def _snapshots(each: _Surveyed, surveyed: Sequence[_Surveyed]) -> Iterator[Ends]:
    """The snapshots of a site, each with what the sites that answer have of it."""
    relations = {other.installation.site: other.relations for other in surveyed}
    yield from (_ends(snapshot, relations) for snapshot in each.installation.snapshots)


def _ends(snapshot: SnapshotDefinition, relations: Mapping[str, Mapping[TableName, Table]]) -> Ends:
    source = relations.get(snapshot.source)
    return Ends(
        snapshot,
        source=(source or {}).get(snapshot.relation),
        target=relations.get(snapshot.target, {}).get(snapshot.table),
        source_seen=source is not None,
    )


def _snapshot_statements(each: _Surveyed, surveyed: Sequence[_Surveyed]) -> list[str]:
    made = list[str]()
    for ends in _snapshots(each, surveyed):
        if ends.snapshot.target == each.installation.site:
            made += snapshot_provision.target_statements(ends, each.installation.applier)
    return [*made, *(grant.sql for grant in _snapshot_grants(each, surveyed))]


def _snapshot_grants(each: _Surveyed, surveyed: Sequence[_Surveyed]) -> list[Grant]:
    site, logins = each.installation.site, each.installation.logins
    found = [snapshot_provision.needed_grants(ends, site, logins) for ends in _snapshots(each, surveyed)]
    return list(dict.fromkeys(chain.from_iterable(found)))


def _differences(surveyed: Sequence[_Surveyed]) -> Iterator[str]:
    """Each site's tables against the first site that carries them."""
    first: dict[str, Structure] = {}
    for each in surveyed:
        for wanted in each.installation.tables:
            if (structure := each.state.structure(wanted)) is None:
                continue
            if wanted.name in first:
                yield from differences(wanted.name, first[wanted.name], structure)
            first.setdefault(wanted.name, structure)


def _refuse(survey: _Survey, *more: str) -> None:
    if problems := [*_problems(survey.reached), *more]:
        every = list(dict.fromkeys([*problems, *survey.failures]))
        lines = "\n".join(f"  - {problem}" for problem in every)
        raise ProvisioningRefused(f"nothing was written, because:\n{lines}", problems=tuple(every))


def provision(installations: Sequence[Installation], tell: Tell = silent) -> list[str]:
    """Make every site ready that answers; what is to be done next, each one line.

    Raises ProvisioningRefused with one line per problem; then nothing was written anywhere. Raises
    SiteUnavailable or what else was wrong with a site, one line each, after the others were made ready.
    """
    unproven: set[tuple[str, str]] = set()
    meter = Meter("provision", "every site", of=len(installations), unit="sites")

    def act(survey: _Survey, each: _Surveyed) -> None:
        unproven.update(_provision(survey, each))
        meter.done += 1

    with told(tell, meter), _survey(installations) as survey:
        _refuse(
            survey, *_not_to_be_given(survey), *(each.refusal for each in survey.admissions if each.lacks)
        )
        survey.do(partial(act, survey), "provisioned")
    return [_to_initialize(synchronization, unproven) for synchronization in sorted(dict(unproven))]


def _not_to_be_given(survey: _Survey) -> list[str]:
    return [problem for each in survey.admissions for problem in each.problems]


def _provision(survey: _Survey, each: _Surveyed) -> set[tuple[str, str]]:
    roles = (each.installation.reader, each.installation.applier)
    snapshots = _snapshot_statements(each, survey.reached)
    return site_provision.provision(each.connection, each.state, *roles, snapshots, _afterwards(survey, each))


def _to_initialize(synchronization: str, unproven: set[tuple[str, str]]) -> str:
    tables = ", ".join(sorted(table for name, table in unproven if name == synchronization))
    return (
        f"{synchronization}: {tables}: changes may have been missed, or are seen otherwise now; run `initialize"
        f" {synchronization}`, before which its links do not carry them"
    )


def sql(installations: Sequence[Installation]) -> Iterator[tuple[str, str]]:
    """The same, as (site, script for a DBA to run); for an installer that lacks something, the script that gives it.

    Raises as `provision` does, the latter after the last script.
    """
    with _survey(installations) as survey:
        _refuse(survey, *_not_to_be_given(survey))
        for each in survey.reached:
            lacked = each.admission
            yield (
                each.installation.site,
                script.for_a_superuser(lacked) if lacked.lacks else _made(survey, each),
            )
        for site, lacked in survey.shut_out.items():
            del survey.failed[site]
            yield site, script.for_a_superuser(lacked)
        survey.name_the_failed("printed the others")


def _made(survey: _Survey, each: _Surveyed) -> str:
    """The installer's script."""
    roles = (each.installation.reader, each.installation.applier)
    snapshots, user = _snapshot_statements(each, survey.reached), each.state.facts.user
    made = site_provision.as_installer(
        each.connection, each.state, *roles, snapshots, _afterwards(survey, each)
    )
    return script.for_the_installer(user, made)


def _afterwards(survey: _Survey, site: _Surveyed) -> list[str]:
    """The objects that need the shadow tables, or more than one site. They are announcements where a
    synchronization says `watch`, and sequences, for tables whose configuration says `identity`."""
    wanted = site.installation
    shadows = site.state.shadows()
    announcements = notify.statements(site.connection, shadows, wanted.announced, wanted.applier)
    kept = retention.keep(wanted.conflicts_kept)
    return [kept, *announcements, *identity.statements(survey.sequences, site.sequences)]


def _announced(site: _Surveyed) -> list[Table]:
    """The tables of whose commits some synchronization wants to hear, those that are gone left out."""
    wanted = {each.name: site.state.table(each) for each in site.state.wanted}
    return [table for name, table in wanted.items() if table and name in site.installation.announced]


def check(installations: Sequence[Installation]) -> list[str]:
    """Missing, altered or dangerous objects, each one line; an empty list when all is well. Reads only."""
    with _survey(installations) as survey:
        found = [*survey.failures, *_problems(survey.reached)]
        for each in survey.reached:
            found += site_provision.check(each.state)
            wanted = each.installation
            found += snapshot_provision.check(each.connection, wanted.site, wanted.snapshots)
            lacked = privileges.missing(each.connection, _snapshot_grants(each, survey.reached))
            found += [f"{wanted.site}: {grant.lacked}" for grant in lacked.values()]
            found += _otherwise_kept(each)
            if each.state.facts.provisioned_as is not None:
                found += notify.check(each.connection, wanted.site, _announced(each))
                found += owner.deviations(owner.read(each.connection, each.state.facts, each.state.owner))
                found += site_provision.surplus_rights(each.connection, each.state, wanted.logins)
                found += [
                    f"{each.installation.site}: the applier {each.installation.applier} may write {table},"
                    " which no link does; revoke it"
                    for table in site_provision.writable_elsewhere(each.connection, each.installation.applier)
                ]
        return list(dict.fromkeys([*found, *identity.deviations(survey.sequences)]))


def _otherwise_kept(each: _Surveyed) -> Iterator[str]:
    if each.state.facts.format == FORMAT:
        wanted = each.installation
        kept = retention.kept_at(each.connection)
        if kept != wanted.conflicts_kept:
            yield (
                f"{wanted.site}: keeps conflicts for {in_words(kept)}, and the configuration says"
                f" {in_words(wanted.conflicts_kept)}; run `provision`"
            )


def notices(installations: Sequence[Installation]) -> list[str]:
    """Notices, each one line. They tell of numbers that clash or run out, and of triggers that fire for links too.
    They tell of children outside of the set, and of functions of others that are run. Reads only."""
    with _survey(installations) as survey:
        found = list(identity.notices(survey.sequences))
        for each in survey.reached:
            found += site_provision.notices(each.state, each.connection)
            relations = {**each.state.tables, **each.relations}
            found += others_functions.notices(each.connection, each.installation.site, relations)
        return found


def remove(installations: Sequence[Installation]) -> None:
    """Take Concord off every site that answers; replicated tables and their rows stay.

    Raises SiteUnavailable with one line per site that does not, after the others.
    """
    with _survey(installations) as survey:
        survey.do(lambda each: site_provision.remove_now(each.connection, each.state), "removed from")
