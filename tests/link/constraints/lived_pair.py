"""Two sites whose edits break a constraint together: all of it lived in one run, and looked at after every link."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

from embedded.postgres import Server
from tests.given.broken_constraints import broken
from tests.given.fixtures import site_on
from tests.given.link_without_spark import carry
from tests.given.site import Rows, Site
from tests.given.two_sites import Pair, begin

Happen = Callable[[Site, Site], None]


@dataclass
class Life:
    """The two sites, and what was found after each link."""

    sites: Pair
    order: tuple[str, str]
    unsound: list[str] = field(default_factory=list)
    quiet: set[str] = field(default_factory=set)

    def rows(self, query: str) -> Rows:
        """The rows of both sites: the same."""
        london, capetown = (site.rows(query) for site in self.sites.sites)
        assert london == capetown
        return london

    def ledger(self, *tables: str) -> list[dict[str, Any]]:
        """The entries about rows of these tables, of both sites together."""
        names = {f"public.{table}" for table in tables}
        return [entry for entry in self.sites.conflicts() if entry["table_name"] in names]

    def lost(self, table: str, *keys: int) -> list[dict[str, Any]]:
        """The entries about the rows with these keys."""
        return [entry for entry in self.ledger(table) if int(entry["key"][0]) in keys]

    def run(self, direction: str) -> int:
        """One link, and every constraint of both sites looked at; how many rows it found changed."""
        written = carry(self.sites.job(direction))
        self.unsound += [name for site in self.sites.sites for name in broken(site)]
        return sum(report.acquired for report in written.values())

    def settle(self) -> None:
        """Each link twice; then once more, when nothing is left to be written."""
        for direction in self.order * 2:
            self.run(direction)
        before = [site.stored for site in self.sites.sites]
        for direction in self.order:
            self.run(direction)
        for site, was in zip(self.sites.sites, before, strict=True):
            self.quiet |= site.written_since(was)


def live(
    request: pytest.FixtureRequest, server: Server, name: str, tables: tuple[str, ...], happen: Happen
) -> Iterator[Life]:
    """A life in which the link `request.param` always runs first."""

    def make(site: str) -> Site:
        database = f"{name}_{request.param}_{site}"
        server.create_database(database)
        return site_on(server, site, database)

    def spark() -> SparkSession:
        raise AssertionError("these links run without Spark")

    order = ("forward", "reverse") if request.param == "forward" else ("reverse", "forward")
    life = Life(begin(make("london"), make("capetown"), tables, spark), order)
    try:
        happen(*life.sites.sites)
        life.settle()
        yield life
    finally:
        for site in life.sites.sites:
            site.connection.close()
            server.drop_database(site.database)
