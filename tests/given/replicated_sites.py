"""London publishes its transactions, and Cape Town replays them."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from concord.databases import provisioning
from concord.databases.contract.quoting import quote
from concord.databases.registry import dialect
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationDefinition, ReplicationJob
from concord.jobs.replication_report import ReplicationReport
from concord.messages.errors import ConcordError
from concord.tables.replication_set import ReplicatedTable
from concord.transactional.both_ways import initialize_both_ways, replicate_both_ways
from concord.transactional.opening import never
from concord.transactional.replicate import replicate
from concord.transmission.steps import unheard
from concord.values.identifier import parse_table_name
from spark_jobs.replicate import ask_hook
from tests.given.at_step import At
from tests.given.bare_sites import installation
from tests.given.link_job import next_epoch
from tests.given.site import LOG_READER, Rows, Site

Outcomes = list[ReplicationReport | ConcordError]
#: Those of both sites, or of each by its name.
Statements = Sequence[str] | Mapping[str, Sequence[str]]

#: The steps of a run in small batches at which it is killed: each by its name, and the time that it is taken.
STEPS = [
    ("open", 1),
    ("inspect", 1),
    ("stage", 1),
    ("stage", 3),
    ("replay", 1),
    ("replay", 3),
    ("confirm", 1),
    ("confirm", 4),
]


@dataclass
class Replicated:
    """Two sites and the replication between them."""

    london: Site
    capetown: Site
    tables: tuple[ReplicatedTable, ...]
    name: str = ""
    settings: dict[str, Any] | None = None
    replication_set: str = "operations"

    @property
    def sites(self) -> tuple[Site, Site]:
        return (self.london, self.capetown)

    @property
    def definition(self) -> ReplicationDefinition:
        return ReplicationDefinition(
            name=self.name,
            replication_set=self.replication_set,
            publisher=self.london.name,
            subscriber=self.capetown.name,
            tables=self.tables,
            **(self.settings or {}),
        )

    def installations(self, log_reader: str | None = None) -> list[provisioning.Installation]:
        if log_reader is None:
            log_reader = "" if self.definition.by_triggers else LOG_READER
        more = {"replications": (self.definition,), "log_reader": log_reader}
        captured = self.tables if self.definition.queued else ()
        return [installation(site, captured, **more) for site in self.sites]

    def provision(self) -> None:
        provisioning.provision(self.installations())

    def job(self, direction: Direction = Direction.FORWARD, **changed: Any) -> ReplicationJob:
        source, target = self.sites if direction is Direction.FORWARD else reversed(self.sites)
        fields: dict[str, Any] = {
            "replication": self.definition,
            "transmission": uuid.uuid4().hex,
            "epoch": next_epoch(),
            "direction": direction,
            "source": source.access,
            "target": target.access,
            "log_reader": None if self.definition.by_triggers else source.credentials(LOG_READER),
        }
        return ReplicationJob(**(fields | changed))

    def initialize(self, **changed: Any) -> ReplicationReport:
        return self.run(initialize=True, **changed)

    def initialize_both_ways(self, at: At | None = None, **changed: Any) -> ReplicationReport:
        jobs = (self.job(initialize=True, **changed), self.job(Direction.REVERSE))
        return initialize_both_ways(*jobs, dialect, at or unheard)

    def run_both(self) -> tuple[ReplicationReport, ReplicationReport]:
        return self.run(), self.run(direction=Direction.REVERSE)

    def stay_both(self, run_for: float, asked_to_end: Callable[[], bool] = never) -> Outcomes:
        """Both directions at once, for so many seconds."""
        jobs = [self.job(way, run_for=run_for, linger=run_for) for way in Direction]
        return replicate_both_ways(jobs, dialect, asked_to_end=asked_to_end, ask_hook=ask_hook)

    def run(
        self, at: At | None = None, asked_to_end: Callable[[], bool] = never, **changed: Any
    ) -> ReplicationReport:
        heard = at or (lambda step: None)
        report = replicate(self.job(**changed), dialect, heard, asked_to_end=asked_to_end, ask_hook=ask_hook)
        assert at is None or at.reached, f"no run takes the step {at.step}"
        return report

    def rows(self, table: str) -> tuple[Rows, Rows]:
        """At London and at Cape Town, ordered."""
        one, other = (sorted(site.rows(f"SELECT * FROM {table}"), key=repr) for site in self.sites)
        return one, other

    def are_equal(self) -> bool:
        names = (f"{quote(each.table.schema_name)}.{quote(each.table.name)}" for each in self.tables)
        return all(one == other for one, other in map(self.rows, names))


def begin_replicated(
    london: Site, capetown: Site, ddl: Statements, *tables: str | ReplicatedTable, **settings: Any
) -> Replicated:
    """Tables at both sites, provisioned; not yet initialized."""
    for site in (london, capetown):
        site.run(*(ddl[site.name] if isinstance(ddl, Mapping) else ddl))
    replicated = tuple(map(_table, tables))
    made = Replicated(london, capetown, replicated, f"r{uuid.uuid4().hex[:12]}", settings)
    made.provision()
    return made


def _table(table: str | ReplicatedTable) -> ReplicatedTable:
    return ReplicatedTable(table=parse_table_name(table)) if isinstance(table, str) else table
