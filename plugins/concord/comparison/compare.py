"""One comparison of one pair: open, compare table by table, and repair if it was asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from concord.comparison.compared_table import ComparedTable
from concord.comparison.differences import Differences
from concord.comparison.opening import OpenedSites, opened_sites
from concord.comparison.remedies import TableAtSite, altered_at, remedies
from concord.comparison.repair import BATCH, Place, Repairing, batches
from concord.comparison.scan_pace import by_parts, scanned
from concord.comparison.side import sides
from concord.comparison.spark_steps import SparkSteps
from concord.databases.contract.compared_site import Horizon
from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.jobs.comparison import CompareJob, CompareReport, Difference, Kind, Repair, TableComparison
from concord.messages.errors import LinkFailed, ParametersRefused, StructureChanged
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Meter, Tell, counted, of_tables, silent
from concord.rules.repair_rule import Remedy, Rule
from concord.tables.replication_set import ReplicatedTable, chosen
from concord.transmission.errors import worded
from concord.transmission.steps import Steps, unheard
from concord.versions.row_version import RowVersion

logger = logger_named("concord.compare")


def compare(
    job: CompareJob,
    dialects: Callable[[str], Dialect],
    spark: SparkSteps,
    progress: Progress = unheard,
    tell: Tell = silent,
) -> CompareReport:
    """Compare the pair's tables; with `repair: apply` also write what has to give way, at both sites.

    Without that nothing is written anywhere. Raises a ConcordError.
    """
    steps = Steps(progress, tell)
    with opened_sites(job, dialects, steps) as sites:
        return _Comparison(job, sites, dialects, spark, steps).run()


def _refuse_marked(tables: Sequence[ReplicatedTable]) -> None:
    """Both sites' rows are read as exactly as the coarser one holds a mark: written back, that would cut it. Of edits
    that stand in a log alone a comparison knows nothing."""
    if logged := [table.name for table in tables if table.by_log]:
        raise ParametersRefused(
            f"{', '.join(logged)}: a table whose changes are found in the log (capture: log) is compared, but not"
            " repaired; edit the rows at the site that is wrong, and its log carries them"
        )
    if marked := [table.name for table in tables if table.tracking is not None]:
        raise ParametersRefused(
            f"{', '.join(marked)}: a table whose changes are found by marks of the application is compared, but not"
            " repaired; edit the rows at the site that is wrong, and its mark carries them"
        )


@dataclass
class _Comparison:
    job: CompareJob
    sites: OpenedSites
    dialects: Callable[[str], Dialect]
    spark: SparkSteps
    steps: Steps
    tables: list[TableComparison] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    compared: dict[str, Differences] = field(default_factory=dict)
    horizons: dict[str, tuple[Horizon, Horizon]] = field(default_factory=dict)
    #: Tables that were altered while they were read, or could not be read, each with the reason.
    unread: dict[str, str] = field(default_factory=dict)

    def run(self) -> CompareReport:
        tables = chosen(self.job.link.tables, self.job.link.chosen)
        if self.job.repair is not Repair.NONE:
            _refuse_marked(tables)
        try:
            for table in self.sites.link.shapes:
                try:
                    with worded(table):
                        self._compare(table)
                except (StructureChanged, LinkFailed) as error:
                    if error.facts.get("table") != table:
                        raise
                    self._leave_out(table, {table: error.message})
            if self.job.repair is Repair.APPLY:
                meter = Meter(
                    "repair",
                    of_tables([each.table for each in self.tables]),
                    of=sum(each.differences for each in self.tables),
                )
                with self.steps.long_step("repair", meter), worded("repair"):
                    self._repair(meter)
        finally:
            for compared in self.compared.values():
                compared.forget()
        link = self.job.link
        return CompareReport(
            comparison=link.transmission,
            synchronization=link.synchronization,
            source=link.source.name,
            target=link.target.name,
            repair=self.job.repair,
            tables=tuple(self.tables),
            stopped={**self.sites.link.stopped, **self.unread},
            differences=tuple(self.differences),
            seconds=self.steps.seconds,
        )

    def _compare(self, table: str) -> None:
        """One table, in one cut of each site; everything that is said of it was read there."""
        source, target = self.sites.read
        with ExitStack() as stack:
            self.steps.progress("source_cut")
            here = stack.enter_context(source.cut())
            self.steps.progress("target_cut")
            there = stack.enter_context(target.cut())
            self.horizons[table] = self._horizons(table)
            shapes = [at[table] for at in self.sites.shapes]
            ours, theirs = sides(self.sites.read, shapes, self.horizons[table], (here, there))
            meter = scanned(table, ours.extent, theirs.extent)
            with self.steps.long_step("scan", meter):
                read = ComparedTable(self.spark, ours, theirs, self.job.link.priorities, by_parts(meter))
                compared = read.differences(self.job.kept)
            self.compared[table] = compared
            with self.steps.step("judge"):
                counts = compared.counts()
                planned = self._plan(compared, self._ends(table))
                kept = list(self._kept(table, compared.first()))
        if altered := altered_at(self.sites.read, self.sites.shapes, [table]):
            self._leave_out(table, altered)
            return
        self.tables.append(counts.model_copy(update={"remedies": planned}))
        self.differences += kept
        log_event(logger, "table compared", **counts.model_dump(exclude={"remedies", "written"}))

    def _leave_out(self, table: str, reasons: Mapping[str, str]) -> None:
        """The rows that were read of it may be none at all, and are not to be repaired.

        Raises StructureChanged for the only table.
        """
        self.unread |= reasons
        if compared := self.compared.pop(table, None):
            compared.forget()
        if len(self.sites.link.shapes) == len(self.unread):
            raise StructureChanged("; ".join(self.unread.values()))

    def _horizons(self, table: str) -> tuple[Horizon, Horizon]:
        """How much has left each site, as the other one knows it in its own cut."""
        source, target = self.sites.read
        floor = max(source.site().stamp_floor, target.site().stamp_floor)
        forward = target.state(self.job.link.link).history[0].position.of(table)
        reverse = source.state(self.job.link.related_link).history[0].position.of(table)
        return Horizon(forward, floor), Horizon(reverse, floor)

    def _ends(self, table: str) -> tuple[TableAtSite, TableAtSite]:
        ours, theirs = (
            TableAtSite(end, shapes[table], horizon)
            for end, shapes, horizon in zip(
                self.sites.read, self.sites.shapes, self.horizons[table], strict=True
            )
        )
        return ours, theirs

    def _rule(self, table: str) -> Rule:
        link = self.job.link
        priorities, policy = link.priorities, self.sites.link.shapes[table].policy
        chains = policy.bound(priorities, between=link.ends).without_hold()
        return Rule(chains, priorities, self.job.prefer)

    def _plan(self, compared: Differences, ends: tuple[TableAtSite, TableAtSite]) -> dict[str, int]:
        """How many keys each deed is planned for, all of them counted."""
        planned: Counter[str] = Counter()
        if self.job.repair is not Repair.NONE:
            for keys in batches(compared.all(), BATCH):
                decided = remedies(*ends, self._rule(compared.table), keys)
                planned.update(remedy.deed.value for remedy in decided.values())
        return dict(planned)

    def _kept(self, table: str, first: Sequence[tuple[str, Kind]]) -> Iterator[Difference]:
        """The first differences with both rows and both versions."""
        keys = [key for key, _ in first]
        ends = self._ends(table)
        source, target = (end.found(keys) if keys else {} for end in ends)
        source_rows, target_rows = (end.compared.images(end.shape, keys) for end in ends)
        decided = remedies(*ends, self._rule(table), keys)
        for key, kind in first:
            yield Difference(
                table=table,
                key=tuple(json.loads(key)),
                kind=kind,
                source_row=source_rows.get(key),
                target_row=target_rows.get(key),
                source_version=_described(source[key].version),
                target_version=_described(target[key].version),
                remedy=self._remedy(decided.get(key)),
            )

    def _remedy(self, remedy: Remedy | None) -> str | None:
        return None if self.job.repair is Repair.NONE or remedy is None else remedy.sentence

    def _repair(self, meter: Meter) -> None:
        """Nobody else runs the pair's links meanwhile: a repair holds the lease and the epoch."""
        assert self.sites.written is not None, "a repair has opened both sites for writing"
        places = [
            Place(end, target, shapes, {table: horizons[side] for table, horizons in self.horizons.items()})
            for side, (end, target, shapes) in enumerate(
                zip(self.sites.read, self.sites.written, self.sites.shapes, strict=True)
            )
        ]
        rules = {table: self._rule(table) for table in self.compared}
        link = self.job.link
        alike = link.source.dialect == link.target.dialect
        relay = self.dialects(link.source.dialect).relay if alike else None
        repairing = Repairing(self.spark, relay, (places[0], places[1]), rules, self.steps.progress)
        keys = ((table, key) for table, compared in self.compared.items() for key in compared.all())
        repairing.run(counted(keys, meter))
        self.tables = [
            table.model_copy(update={"written": dict(repairing.written.get(table.table, {}))})
            for table in self.tables
        ]


def _described(version: RowVersion) -> dict[str, Any] | None:
    if version.is_absent:
        return None
    return {
        "origin": version.origin,
        "changed_at": version.changed_at,
        "derived": version.derived,
        "vector": {origin: list(dot) for origin, dot in version.vector.items()},
        "deleted": version.deleted,
    }
