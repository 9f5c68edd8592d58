"""London and Cape Town with snapshots between them: provisioned, refreshed, and looked at."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from concord.configuration.snapshot import captured_for_snapshots
from concord.databases import provisioning
from concord.databases.provisioning import Installation
from concord.jobs.snapshot import SnapshotDefinition, SnapshotJob, SnapshotReport
from concord.tables.replication_set import ReplicatedTable
from concord.values.identifier import parse_table_name
from spark_jobs.snapshot import refresh
from tests.given.at_step import At
from tests.given.bare_sites import installation
from tests.given.link_job import next_epoch
from tests.given.site import Rows, Site

FLIGHTS = (
    "CREATE TABLE flight (id int PRIMARY KEY, origin text, delay int, price numeric, note text)",
    "INSERT INTO flight SELECT n, CASE n % 2 WHEN 0 THEN 'JFK' ELSE 'LGA' END, n * 10, n / 4.0"
    " FROM generate_series(1, 10) n",
)
LATE = "SELECT id, delay FROM public.late ORDER BY id"
WANTED = "SELECT id, delay FROM public.flight WHERE delay > 50 ORDER BY id"


@dataclass
class Copies:
    """Two sites, the snapshots between them, and the tables that synchronizations share."""

    london: Site
    capetown: Site
    spark: Callable[[], SparkSession]
    snapshots: dict[str, SnapshotDefinition] = field(default_factory=dict)
    tables: tuple[ReplicatedTable, ...] = ()

    @property
    def sites(self) -> tuple[Site, Site]:
        return (self.london, self.capetown)

    def define(self, name: str, kind: str, copied: str, table: str, **changed: Any) -> SnapshotDefinition:
        """A snapshot of London's `copied` as Cape Town's `table`, unless told otherwise."""
        ends = {"source": "london", "target": "capetown"} | {
            key: changed.pop(key) for key in ("source", "target") if key in changed
        }
        relation = parse_table_name(copied)
        tracked = None
        if kind == "incremental":
            replicated = {each.at_site(ends["source"]): each for each in self.tables}
            tracked = replicated.get(relation) or captured_for_snapshots(ends["source"], relation)
        self.snapshots[name] = SnapshotDefinition(
            name=name,
            kind=kind,
            relation=relation,
            table=parse_table_name(table),
            tracked=tracked,
            **ends,
            **changed,
        )
        return self.snapshots[name]

    def installations(self) -> list[Installation]:
        return [self._installation(site) for site in self.sites]

    def _installation(self, site: Site) -> Installation:
        here = [each for each in self.snapshots.values() if site.name in (each.source, each.target)]
        tracked = {
            each.tracked.name: each.tracked for each in here if each.tracked and each.source == site.name
        }
        tables = {table.name: table for table in self.tables} | tracked
        return installation(site, tuple(tables.values()), snapshots=tuple(here))

    def provision(self) -> None:
        provisioning.provision(self.installations())

    def job(self, name: str, **changed: Any) -> SnapshotJob:
        definition = self.snapshots[name]
        sites = {site.name: site.access for site in self.sites}
        fields: dict[str, Any] = {
            "snapshot": definition,
            "transmission": uuid.uuid4().hex,
            "epoch": next_epoch(),
            "source": sites[definition.source],
            "target": sites[definition.target],
        }
        return SnapshotJob(**(fields | changed))

    def refresh(self, name: str, at: At | None = None, **changed: Any) -> SnapshotReport:
        report = refresh(self.job(name, **changed), self.spark, at or (lambda step: None))
        assert at is None or at.reached, f"no refresh takes the step {at.step}"
        return report


def counts(report: SnapshotReport) -> tuple[int, int, int, int]:
    """inserted, updated, deleted, unchanged"""
    return (report.inserted, report.updated, report.deleted, report.unchanged)


def sorted_rows(site: Site, query: str) -> Rows:
    return sorted(site.rows(query), key=repr)


def content(copies: Copies) -> None:
    """The copy `late` is exactly what the query gives at the source."""
    assert copies.capetown.rows(LATE) == copies.london.rows(WANTED)
