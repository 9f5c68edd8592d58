"""The configuration's meaning for one link, one site, one cleanup: names become jobs with logins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from uuid import uuid4

from concord.configuration.configuration import Configuration, SiteSettings
from concord.databases.provisioning import Installation
from concord.jobs.link import Direction, LinkJob, link_name
from concord.jobs.replication import ReplicationDefinition
from concord.jobs.site import Capture, Credentials, SiteAccess
from concord.jobs.snapshot import SnapshotDefinition
from concord.jobs.upkeep import CarryingSite
from concord.messages.errors import ConnectionRefused, ParametersRefused
from concord.orchestration.surroundings.connections import credentials, logins
from concord.tables.replication_set import ReplicatedTable
from concord.values.interval import Interval


def link_job(
    configuration: Configuration,
    synchronization: str,
    direction: Direction,
    *,
    epoch: int,
    chosen: Sequence[str] | None = None,
    plan_only: bool = False,
    interval: Interval | None = None,
) -> LinkJob:
    """One transmission of one link, under a new id. Raises ParametersRefused or ConnectionRefused."""
    tables = configuration.tables(synchronization_name(configuration, synchronization))
    refuse_unknown_tables(chosen, tables)
    source, target = ends(configuration, synchronization, direction)
    settings = configuration.synchronizations[synchronization]
    at_source, at_target = site_accesses(configuration, (source, target))
    return LinkJob(
        synchronization=synchronization,
        direction=direction,
        transmission=uuid4().hex,
        epoch=epoch,
        source=at_source,
        target=at_target,
        tables=tables,
        chosen=None if chosen is None else tuple(chosen),
        plan_only=plan_only,
        interval=interval,
        max_quarantined=settings.max_quarantined,
        spark_from=settings.spark_from,
        priorities={name: site.priority for name, site in configuration.sites.items()},
    )


def synchronization_name(configuration: Configuration, name: str) -> str:
    """The name, if there is such a synchronization. Raises ParametersRefused."""
    return known_name(name, configuration.synchronizations, "synchronization")


def ends(configuration: Configuration, synchronization: str, direction: Direction) -> tuple[str, str]:
    """The link's source and target site."""
    pair = configuration.synchronizations[synchronization]
    forward = (pair.source, pair.target)
    return forward if direction is Direction.FORWARD else (pair.target, pair.source)


def refuse_unknown_tables(chosen: Iterable[str] | None, tables: Iterable[ReplicatedTable]) -> None:
    """Raise ParametersRefused for a table that the synchronization does not carry."""
    known = [table.name for table in tables]
    for name in chosen or ():
        known_name(name, known, "table of this synchronization")


def site_access(configuration: Configuration, name: str) -> SiteAccess:
    """The two logins by which links reach a site, and its limits. Raises ConnectionRefused."""
    (access,) = site_accesses(configuration, [name])
    return access


def site_accesses(configuration: Configuration, names: Iterable[str]) -> list[SiteAccess]:
    """The same for several sites; connections that are missing are named all at once."""
    sites = [(name, configuration.sites[name]) for name in names]
    connections = [(site, each) for _, site in sites for each in _of_links(site)]
    found = iter(logins([(each, site.insecure) for site, each in connections]))
    return [_access(name, site, *(next(found) for _ in _of_links(site))) for name, site in sites]


def _of_links(site: SiteSettings) -> list[str]:
    """The connections that links use: the reader's, the applier's, and the log's where changes are read from it."""
    read_log = [site.log_reader] if site.capture is Capture.LOG and site.log_reader else []
    return [site.reader_connection, site.applier_connection, *read_log]


def _access(
    name: str,
    site: SiteSettings,
    reader: Credentials,
    applier: Credentials,
    log_reader: Credentials | None = None,
) -> SiteAccess:
    """Raises ConnectionRefused where the logins are not of one database."""
    for other in filter(None, (applier, log_reader)):
        refuse_other_dialect(name, reader, other)
    return SiteAccess(
        name=name,
        dialect=reader.dialect,
        readers=site.readers,
        max_clock_skew=site.max_clock_skew.total_seconds(),
        reader=reader,
        applier=applier,
        log_reader=log_reader,
    )


def refuse_other_dialect(site: str, login: Credentials, other: Credentials) -> None:
    """Raises ConnectionRefused where two logins of a site are of different databases."""
    if login.dialect != other.dialect:
        raise ConnectionRefused(
            f"{site}: {login.known_as} is of {login.dialect}, and {other.known_as} of {other.dialect}; a site is one"
            " database"
        )


def installers(configuration: Configuration, names: Iterable[str]) -> dict[str, Credentials]:
    """The installer's login of each of these sites for which Airflow has its connection."""
    found = {}
    for name in names:
        site = configuration.sites[name]
        with suppress(ConnectionRefused):
            found[name] = credentials(site.installer_connection, insecure=site.insecure)
    return found


def installations(configuration: Configuration, only: str | None = None) -> list[Installation]:
    """The tables that each site, or `only` one, is to carry: those of all its synchronizations together.

    Raises ParametersRefused, or ConnectionRefused that names all connections that are missing.
    """
    if only is not None:
        known_name(only, configuration.sites, "site")
    sites = [(name, configuration.sites[name]) for name in (configuration.sites if only is None else [only])]
    found = iter(logins([(each, site.insecure) for _, site in sites for each in site.role_connections]))
    return [
        _installation(configuration, name, site, [next(found) for _ in site.role_connections])
        for name, site in sites
    ]


def _installation(
    configuration: Configuration, name: str, site: SiteSettings, of_roles: Sequence[Credentials]
) -> Installation:
    installer, reader, applier, *log_reader = of_roles
    for each in log_reader:
        refuse_other_dialect(name, reader, each)
    return Installation(
        site=name,
        installer=installer,
        reader=reader.user,
        applier=applier.user,
        tables=tables_of(configuration, name),
        max_clock_skew=site.max_clock_skew.total_seconds(),
        snapshots=snapshots_of(configuration, name),
        replications=replications_of(configuration, name),
        log_reader=log_reader[0].user if log_reader else "",
        reads_log=log_reader[0] if log_reader else None,
        conflicts_kept=configuration.retention.conflicts,
        announced=configuration.announced_at(name),
    )


def tables_of(configuration: Configuration, site: str) -> tuple[ReplicatedTable, ...]:
    """Every table that the site shares with another one or that is captured there for snapshots; once, or once for
    each of its row filters."""
    tables: dict[object, ReplicatedTable] = {}
    for name, pair in configuration.synchronizations.items():
        if site in pair.sites:
            tables |= {_scope(table): table for table in configuration.tables(name)}
    for snapshot in snapshots_of(configuration, site):
        if snapshot.tracked is not None and snapshot.tracked.captured_only and snapshot.source == site:
            tables[snapshot.tracked.name] = snapshot.tracked
    for replication in replications_of(configuration, site):
        if replication.queued:
            tables |= {_scope(table): table for table in replication.tables}
    return tuple(tables.values())


def _scope(table: ReplicatedTable) -> object:
    """The difference between two entries of one table at a site: the conditions that must hold on its columns."""
    owners = {site: str(where) for site, where in table.owners.items()}
    return table.name, table.filter_text, tuple(sorted(owners.items())), table.not_owned


def snapshots_of(configuration: Configuration, site: str) -> tuple[SnapshotDefinition, ...]:
    """The snapshots that read the site or are kept there."""
    return tuple(
        configuration.snapshot(name)
        for name, snapshot in configuration.snapshots.items()
        if site in (snapshot.source, snapshot.target)
    )


def replications_of(configuration: Configuration, site: str) -> tuple[ReplicationDefinition, ...]:
    """The replications of which the site is an end."""
    return tuple(
        configuration.replication(name)
        for name, replication in configuration.replications.items()
        if site in replication.sites
    )


def carrying_sites(configuration: Configuration) -> list[CarryingSite]:
    """Every site with the links that leave it: what decides when its tombstones may go (S1-39)."""
    carried = {name: tables for name in configuration.sites if (tables := tables_of(configuration, name))}
    return [
        CarryingSite(
            access,
            links_out(configuration, access.name),
            carried[access.name],
            _remembered(configuration, access.name),
        )
        for access in site_accesses(configuration, carried)
    ]


def _remembered(configuration: Configuration, site: str) -> frozenset[str]:
    """The tables whose rows travel with their versions by queued updating: what is told there is compared later."""
    queued = [each for each in replications_of(configuration, site) if each.queued]
    return frozenset(table.name for each in queued for table in each.tables)


def links_out(configuration: Configuration, site: str) -> dict[str, dict[str, str]]:
    """For each table of the site, the links that carry it away, each with the site it leads to."""
    links: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for captured in tables_of(configuration, site):
        links[captured.name] = {}  # a snapshot counts from its first refresh on, by what the site remembers
    for name, pair in configuration.synchronizations.items():
        if site in pair.sites:
            direction = Direction.FORWARD if site == pair.source else Direction.REVERSE
            _, peer = ends(configuration, name, direction)
            for table in configuration.tables(name):
                links[table.name][link_name(name, direction)] = peer
    return dict(links)


def known_name(name: str, known: Iterable[str], what: str) -> str:
    """The name, if it is known. Raises ParametersRefused with what there is."""
    names = sorted(known)
    if name not in names:
        raise ParametersRefused(f"there is no {what} {name!r}; there are {', '.join(names) or 'none'}")
    return name
