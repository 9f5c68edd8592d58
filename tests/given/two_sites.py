"""Two sites with real data, provisioned and declared equal, and what a test does with them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from concord.databases.postgresql.initialize.common_history import declare_equal
from concord.databases.postgresql.rows.content import Content, content
from concord.databases.postgresql.sites.ends import Source
from concord.jobs.link import Direction, LinkJob, TableReport, TransmissionReport
from concord.tables.replication_set import ReplicatedTable
from spark_jobs.link import transmit
from tests.given.at_step import At
from tests.given.link_job import link_job
from tests.given.site import Site, captured, every_table, make_tables, provision_site

SYNCHRONIZATION = "london_capetown"


@dataclass
class Pair:
    """London and Cape Town. `run` takes one link once; `settle` both, twice (rule 12)."""

    london: Site
    capetown: Site
    tables: tuple[ReplicatedTable, ...]
    spark: Callable[[], SparkSession]
    synchronization: str = SYNCHRONIZATION

    @property
    def sites(self) -> tuple[Site, Site]:
        return (self.london, self.capetown)

    def job(self, direction: str = "forward", **changed: object) -> LinkJob:
        london, capetown = self.london.access, self.capetown.access
        ends = (london, capetown) if direction == "forward" else (capetown, london)
        return link_job(
            ends,
            self.tables,
            **{"synchronization": self.synchronization, "direction": Direction(direction)} | changed,
        )

    def run(self, direction: str = "forward", at: At | None = None, **changed: object) -> TransmissionReport:
        report = transmit(self.job(direction, **changed), self.spark, at or (lambda step: None))
        assert at is None or at.reached, f"no link takes the step {at.step}"
        return report

    def settle(self, *, first: str = "forward") -> list[TransmissionReport]:
        order = [first, Direction(first).related.value]
        return [self.run(direction) for direction in order * 2]

    def contents(self) -> tuple[dict[str, Content], dict[str, Content]]:
        """Row count and content hash of every table at both sites, computed by the databases."""
        return self._content("forward"), self._content("reverse")

    def _content(self, direction: str) -> dict[str, Content]:
        source = Source(self.job(direction))
        try:
            return content(source.connection, source.inspect(self.tables)[0])
        finally:
            source.close()

    @property
    def equal(self) -> bool:
        ours, theirs = self.contents()
        return ours == theirs

    def conflicts(self) -> list[dict[str, Any]]:
        """Both logs together: a conflict is kept where it was decided."""
        return self.london.conflicts() + self.capetown.conflicts()


def carried(report: TransmissionReport, table: str | None = None) -> TableReport:
    """The counts of one table; of the only one that had changes when none is named."""
    found = [each for each in report.tables if (each.table == table if table else each.acquired)]
    assert len(found) == 1, [each.table for each in found]
    return found[0]


def begin(london: Site, capetown: Site, ddl: Sequence[str], spark: Callable[[], SparkSession]) -> Pair:
    """Run the same statements at both sites, provision every table, declare the sites equal."""
    for site in (london, capetown):
        make_tables(site, ddl)
    tables = captured(every_table(london), london, capetown)
    for site in (london, capetown):
        provision_site(site, tables)
    pair = Pair(london, capetown, tables, spark)
    declare_equal(pair.job())
    return pair
