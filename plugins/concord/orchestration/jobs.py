"""What the configuration means for one link, one site, one cleanup: names become jobs with logins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from uuid import uuid4

from concord.config import Configuration, SiteSettings
from concord.databases.postgresql.tombstones import CarryingSite
from concord.databases.provisioning import Installation
from concord.errors import ParametersRefused
from concord.interval import Interval
from concord.link import Direction, LinkJob, link_name
from concord.orchestration.connections import credentials
from concord.replication_set import ReplicatedTable
from concord.site import SiteAccess
from concord.snapshot import SnapshotDefinition


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
    return LinkJob(
        synchronization=synchronization,
        direction=direction,
        transmission=uuid4().hex,
        epoch=epoch,
        source=site_access(configuration, source),
        target=site_access(configuration, target),
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
    site = configuration.sites[name]
    return SiteAccess(
        name=name,
        readers=site.readers,
        max_clock_skew=site.max_clock_skew.total_seconds(),
        reader=credentials(site.reader_connection, insecure=site.insecure),
        applier=credentials(site.applier_connection, insecure=site.insecure),
    )


def installations(configuration: Configuration, only: str | None = None) -> list[Installation]:
    """What each site, or `only` one, is to carry: the tables of all its synchronizations together."""
    if only is not None:
        known_name(only, configuration.sites, "site")
    names = configuration.sites if only is None else [only]
    return [_installation(configuration, name, configuration.sites[name]) for name in names]


def _installation(configuration: Configuration, name: str, site: SiteSettings) -> Installation:
    return Installation(
        site=name,
        installer=credentials(site.installer_connection, insecure=site.insecure),
        reader=credentials(site.reader_connection, insecure=site.insecure).user,
        applier=credentials(site.applier_connection, insecure=site.insecure).user,
        tables=tables_of(configuration, name),
        max_clock_skew=site.max_clock_skew.total_seconds(),
        snapshots=snapshots_of(configuration, name),
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
    return tuple(tables.values())


def _scope(table: ReplicatedTable) -> object:
    """What makes two entries of one table different at a site: the conditions that must hold on its columns."""
    owners = {site: str(where) for site, where in table.owners.items()}
    return table.name, table.filter_text, tuple(sorted(owners.items()))


def snapshots_of(configuration: Configuration, site: str) -> tuple[SnapshotDefinition, ...]:
    """The snapshots that read the site or are kept there."""
    return tuple(
        configuration.snapshot(name)
        for name, snapshot in configuration.snapshots.items()
        if site in (snapshot.source, snapshot.target)
    )


def carrying_sites(configuration: Configuration) -> list[CarryingSite]:
    """Every site with the links that leave it: what decides when its tombstones may go (S1-39)."""
    return [
        CarryingSite(site_access(configuration, name), links_out(configuration, name), tables)
        for name in configuration.sites
        if (tables := tables_of(configuration, name))
    ]


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
