"""Any number of sites in any topology of pairs, with real data, provisioned and initialized; links run in-process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.content import Content, content
from concord.databases.postgresql.sites.ends import Source
from concord.jobs.link import SPARK_FROM, Direction, LinkJob, TransmissionReport, link_name
from concord.jobs.upkeep import CarryingSite
from concord.tables.replication_set import Marks, ReplicatedTable
from spark_jobs.link import transmit
from tests.given.at_step import At
from tests.given.link_job import link_job
from tests.given.site import Site, captured, every_table, make_tables, provision_site

Link = tuple[str, str]  #: source, target


@dataclass(frozen=True)
class Topology:
    """Which sites there are, and which pairs of them are synchronized."""

    name: str
    sites: tuple[str, ...]
    pairs: tuple[Link, ...]

    @property
    def links(self) -> list[Link]:
        """Both links of every pair."""
        return [link for one, other in self.pairs for link in ((one, other), (other, one))]

    def neighbours(self, site: str) -> set[str]:
        return {target for source, target in self.links if source == site}

    @property
    def diameter(self) -> int:
        """Links that the longest of the shortest ways has."""
        return max(self._reach(site) for site in self.sites)

    def _reach(self, site: str) -> int:
        steps, seen, edge = 0, {site}, {site}
        while edge := {near for each in edge for near in self.neighbours(each)} - seen:
            steps, seen = steps + 1, seen | edge
        assert seen == set(self.sites), f"{self.name} falls apart"
        return steps


def hub(centre: str, *spokes: str) -> Topology:
    return Topology("hub", (centre, *spokes), tuple((centre, spoke) for spoke in spokes))


def chain(*sites: str) -> Topology:
    return Topology("chain", sites, tuple(pairwise(sites)))


def ring(*sites: str) -> Topology:
    return Topology("ring", sites, (*pairwise(sites), (sites[-1], sites[0])))


def mesh(*sites: str) -> Topology:
    return Topology("mesh", sites, tuple(combinations(sites, 2)))


@dataclass
class Network:
    """Sites and pairs; both may be added while a test goes on."""

    topology: Topology
    by_name: dict[str, Site]
    tables: tuple[ReplicatedTable, ...]
    spark: Callable[[], SparkSession]
    make_site: Callable[[str], Site]  #: an empty database
    reports: list[TransmissionReport] = field(default_factory=list)

    def __getitem__(self, name: str) -> Site:
        return self.by_name[name]

    @property
    def sites(self) -> tuple[Site, ...]:
        return tuple(self.by_name.values())

    def job(self, source: str, target: str, **changed: object) -> LinkJob:
        name, direction = self.synchronization(source, target)
        ends = (self[source].access, self[target].access)
        runs, links = len(self.reports), len(self.topology.links)
        # Now Spark, now the driver carries what meets nothing: each link by Spark in every third round.
        by_turns = SPARK_FROM * ((runs % links + runs // links) % 3 != 0)
        about = {"synchronization": name, "direction": direction, "spark_from": by_turns}
        return link_job(ends, self.tables, **about | changed)

    def synchronization(self, source: str, target: str) -> tuple[str, Direction]:
        """The pair's synchronization, and which of its two links goes from source to target."""
        if (source, target) in self.topology.pairs:
            return f"{source}_{target}", Direction.FORWARD
        assert (target, source) in self.topology.pairs, f"{source} and {target} are no pair"
        return f"{target}_{source}", Direction.REVERSE

    def link(self, source: str, target: str) -> str:
        """Both ends' name of the link."""
        return link_name(*self.synchronization(source, target))

    def run(self, source: str, target: str, at: At | None = None, **changed: object) -> TransmissionReport:
        report = transmit(self.job(source, target, **changed), self.spark, at or (lambda step: None))
        self.reports.append(report)
        return report

    def round(self, links: Sequence[Link] | None = None) -> list[TransmissionReport]:
        """Every link once, in the given order."""
        return [self.run(*link) for link in (links or self.topology.links)]

    def settle(self) -> None:
        """Rounds until one carries nothing."""
        for _ in range(2 * self.topology.diameter + 1):
            if not any(report.total("acquired") for report in self.round()):
                return
        raise AssertionError("the sites never come to rest")

    def add(self, name: str, peer: str, ddl: Sequence[str]) -> None:
        """One more site, with its tables, provisioned and joined to a peer; not initialized yet."""
        site = self.by_name[name] = self.make_site(name)
        make_tables(site, ddl)
        self.tables = captured(self.tables, *self.sites)
        provision_site(site, self.tables)
        known = self.topology
        self.topology = Topology(known.name, (*known.sites, name), (*known.pairs, (peer, name)))

    def leave(self, name: str) -> None:
        """The site leaves the configuration; nobody is told."""
        known = self.topology
        staying = tuple(site for site in known.sites if site != name)
        self.topology = Topology(known.name, staying, tuple(pair for pair in known.pairs if name not in pair))

    def initialize(self, one: str, other: str) -> None:
        declare_equal(self.job(one, other))

    def content(self, name: str) -> dict[str, Content]:
        """Row count and content hash of every table at a site, computed by the database."""
        (peer, *_) = self.topology.neighbours(name)
        source = Source(self.job(name, peer))
        try:
            return content(source.connection, source.inspect(self.tables)[0])
        finally:
            source.close()

    @property
    def equal(self) -> bool:
        first, *others = (self.content(name) for name in self.topology.sites)
        return all(other == first for other in others)

    def conflicts(self) -> list[dict[str, Any]]:
        """All logs together: a conflict is kept where it was decided."""
        return [conflict for site in self.sites for conflict in site.conflicts()]

    def carrying(self, *names: str) -> list[CarryingSite]:
        """The sites, all unless some are named, as tombstone cleanup asks them."""
        return [
            CarryingSite(
                self[name].access, {table.name: self._links_out(name) for table in self.tables}, self.tables
            )
            for name in names or self.topology.sites
        ]

    def _links_out(self, name: str) -> dict[str, str]:
        return {self.link(name, peer): peer for peer in sorted(self.topology.neighbours(name))}


def begin_network(
    topology: Topology,
    make_site: Callable[[str], Site],
    ddl: Sequence[str],
    spark: Callable[[], SparkSession],
    marks: Mapping[str, Marks] = MappingProxyType({}),
) -> Network:
    """Run the same statements at every site, provision each once, and initialize every pair. `marks` are those of
    tables that have any."""
    sites = {name: make_site(name) for name in topology.sites}
    for site in sites.values():
        make_tables(site, ddl)
    made = every_table(sites[topology.sites[0]])
    marked = tuple(each.model_copy(update={"tracking": marks.get(each.name)}) for each in made)
    tables = captured(marked, *sites.values())
    for site in sites.values():
        provision_site(site, tables)
    network = Network(topology, sites, tables, spark, make_site)
    for pair in topology.pairs:
        network.initialize(*pair)
    return network
