"""Nodes that count hits, each for all: every node replays the calls of every other (S4-173, S4-174)."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from concord.databases import provisioning
from concord.jobs.replication import ReplicationDefinition
from concord.values.identifier import parse_table_name
from tests.given.bare_sites import installation
from tests.given.replicated_sites import Replicated
from tests.given.site import LOG_READER, Rows, Site

#: Both counters of a hit are one transaction's; the first hit of a key inserts it with 1.
LOGGER = (
    "CREATE TABLE public.hits_of_address (address text PRIMARY KEY, hits bigint NOT NULL)",
    "CREATE TABLE public.hits_of_person (person text PRIMARY KEY, hits bigint NOT NULL)",
    """CREATE PROCEDURE public.hit(address text, person text) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = '' AS $$
BEGIN
  INSERT INTO public.hits_of_address AS present VALUES (hit.address, 1)
    ON CONFLICT ON CONSTRAINT hits_of_address_pkey DO UPDATE SET hits = present.hits + 1;
  INSERT INTO public.hits_of_person AS present VALUES (hit.person, 1)
    ON CONFLICT ON CONSTRAINT hits_of_person_pkey DO UPDATE SET hits = present.hits + 1;
END $$""",
)
HIT = parse_table_name("public.hit")


@dataclass
class Nodes:
    """Any number of sites, and a replication of calls from each to each other one."""

    sites: Sequence[Site]

    @cached_property
    def ways(self) -> list[Replicated]:
        return [
            Replicated(one, other, (), f"w{uuid.uuid4().hex[:12]}", {"procedures": (HIT,)}, "logger")
            for one, other in permutations(self.sites, 2)
        ]

    def provision(self) -> None:
        provisioning.provision(self.installations())

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


MakeNodes = Callable[[int], Nodes]


def begin_nodes(sites: Sequence[Site]) -> Nodes:
    """Provisioned and initialized, before the first hit."""
    for site in sites:
        site.run(*LOGGER)
    made = Nodes(sites)
    made.provision()
    for way in made.ways:
        way.initialize()
    return made
