"""Nodes that count hits, each for all: every node replays the calls of every other (S4-173, S4-174)."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations

from benchmarks.logger_nodes import TABLES
from concord.databases import provisioning
from concord.jobs.replication import ReplicationDefinition
from concord.values.identifier import parse_table_name
from tests.given.bare_sites import installation
from tests.given.replicated_sites import Replicated
from tests.given.site import LOG_READER, Rows, Site

HIT = parse_table_name("public.hit")


@dataclass
class Nodes:
    """Any number of sites, and a replication of calls from each to each other one."""

    sites: Sequence[Site]
    ways: Sequence[Replicated]

    def begin(self) -> None:
        """Provision and initialize all, before the first hit."""
        provisioning.provision(self.installations())
        for way in self.ways:
            way.initialize()

    def installations(self) -> list[provisioning.Installation]:
        """Of each site with the ways that it is an end of."""
        return [
            installation(site, (), replications=self._of(site), log_reader=LOG_READER) for site in self.sites
        ]

    def _of(self, site: Site) -> tuple[ReplicationDefinition, ...]:
        return tuple(each.definition for each in self.ways if site in each.sites)

    def hit(self, site: Site, address: str, person: str) -> None:
        site.run(f"SELECT concord.call('public.hit', '{address}', '{person}')")

    def run_all(self) -> None:
        for way in self.ways:
            way.run()

    def counted(self) -> list[tuple[Rows, Rows]]:
        """By node: the hits of each address, and of each person."""
        return [
            (
                site.rows("SELECT * FROM hits_of_address ORDER BY address"),
                site.rows("SELECT * FROM hits_of_person ORDER BY person"),
            )
            for site in self.sites
        ]


MakeSites = Callable[[int], Sequence[Site]]
MakeNodes = Callable[[int], Nodes]


def begin_nodes(sites: Sequence[Site]) -> Nodes:
    """With the tables of the logger, and a way from each to each other one."""
    for site in sites:
        site.run(*TABLES)
    ways = [
        Replicated(one, other, (), f"w{uuid.uuid4().hex[:12]}", {"procedures": (HIT,)}, "logger")
        for one, other in permutations(sites, 2)
    ]
    made = Nodes(sites, ways)
    made.begin()
    return made
