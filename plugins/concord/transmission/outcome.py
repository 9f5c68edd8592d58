"""The fate of every change of a run on its way to staging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from concord.databases.contract.dialect import Staged
from concord.jobs.link import TableReport
from concord.messages.errors import CountMismatch
from concord.messages.how_many import how_many
from concord.rules.brake import Hold
from concord.transmission.opening import with_children
from concord.transmission.verdicts import SAME_THING, UNDER_LOCK


@dataclass
class Moved:
    """The rows that the source had counted, those settled on the way, and those that reached staging."""

    counted: Mapping[str, int]
    tolerances: Mapping[str, float] = field(default_factory=dict)  #: of tables with marks of the application
    settled: dict[str, Counter[str]] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    waiting: list[Staged] = field(
        default_factory=list
    )  #: places for rows of other tables that wait at the target
    removals: dict[str, int] = field(default_factory=dict)  #: staged rows that may take a row away
    bytes: int = 0
    unjudged: set[str] = field(default_factory=set)  #: staged, and may meet versions of the target
    not_owned: Mapping[str, int] = field(default_factory=dict)  #: sent all the same (S2-23)
    stopped: dict[str, str] = field(default_factory=dict)  #: tables left out, each with the reason
    holds: list[Hold] = field(default_factory=list)  #: those of them that wait for a person

    def stop(self, reasons: Mapping[str, str], parents: Mapping[str, Collection[str]]) -> None:
        """Leave tables out, with those that refer to them: nothing of them is written, and no position moves."""
        self.stopped = with_children(self.stopped | dict(reasons), parents)
        self.staged = [each for each in self.staged if each.shape.name not in self.stopped]
        self.waiting = [each for each in self.waiting if each.shape.name not in self.stopped]

    @property
    def placed(self) -> list[Staged]:
        """The input of the target's transaction."""
        return [*self.staged, *self.waiting]

    @property
    def carried(self) -> list[str]:
        return [table for table in self.counted if table not in self.stopped]

    def check_complete(self) -> None:
        """Before anything is written: tasks read exactly the rows that the source counted in that snapshot."""
        staged = {each.shape.name: each.rows for each in self.staged}
        for table in self.carried:
            wanted = self.counted[table]
            read = staged.get(table, 0) + sum(self.settled.get(table, Counter()).values())
            if read != wanted:
                raise CountMismatch(
                    f"{table}: the source counted {how_many(wanted, 'changed row')}, but"
                    f" {how_many(read, 'row was', 'rows were')} read; nothing was written"
                )

    def reports(self, written: Mapping[str, TableReport]) -> list[TableReport]:
        """Rows per outcome of every table. Raises CountMismatch when they do not add up (rule 11)."""
        reports = [
            self._report(table, written.get(table, TableReport(table=table))) for table in self.carried
        ]
        for report in reports:
            if not report.adds_up or report.acquired - report.retried != self.counted[report.table]:
                raise CountMismatch(
                    f"{report.table}: the source counted {how_many(self.counted[report.table], 'row')}:"
                    f" {report.model_dump()}"
                )
        left_out = [TableReport(table=table, stopped=why) for table, why in self.stopped.items()]
        return reports + left_out

    def _report(self, table: str, written: TableReport) -> TableReport:
        settled = self.settled.get(table, Counter())
        merged = settled["merged"] + settled[UNDER_LOCK]  # a plan: the write step would decide most of these
        won, lost = settled["source_wins"] + merged, settled["target_wins"]
        return TableReport(
            table=table,
            acquired=written.acquired + sum(settled.values()),
            applied=written.applied + settled["apply"] + won,
            converged=written.converged + settled["converged"] + settled["unite"] + settled[SAME_THING],
            superseded=written.superseded + settled["superseded"],
            lost=written.lost + lost,
            filtered=written.filtered,
            held=written.held + settled["held"],
            quarantined=written.quarantined + settled["quarantined"],
            retried=written.retried,
            not_owned=self.not_owned.get(table, 0),
            conflicts=written.conflicts + won + lost,
            merged=written.merged + merged,
            restored=written.restored,
            inserted_for_update=written.inserted_for_update,
            reinitializing=written.reinitializing,
            tolerance=self.tolerances.get(table),
        )
