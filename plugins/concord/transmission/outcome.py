"""The outcome of a link: what has become of every change of a run on its way to staging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from concord.databases.contract.rows import Staged
from concord.jobs.link import LinkJob, TableReport
from concord.messages.errors import (
    CountMismatch,
    HookFailed,
    MappingNotReversible,
    ResolverFailed,
    StructureChanged,
)
from concord.messages.how_many import how_many
from concord.rules.brake import Hold
from concord.transmission.count import Counted
from concord.transmission.link import Link
from concord.transmission.staged_table import StagedTable, some
from concord.transmission.stopped import with_children
from concord.transmission.verdicts import FAILED, SAME_THING, UNDER_LOCK, UNFAITHFUL, UNHOOKED

#: Why a run that carries no table has failed, by the verdict that stopped one.
_FAILURES = {UNFAITHFUL: MappingNotReversible, FAILED: ResolverFailed, UNHOOKED: HookFailed}


@dataclass
class LinkOutcome:
    """The source's counts, the changes that were settled on the way, and those that reached staging."""

    job: LinkJob
    position: str  #: of the source's cut
    heartbeat: int  #: that followed the cut; 0 for none
    counted: Counted
    stopped: dict[str, str]  #: tables left out, each with the reason
    parents: Mapping[str, Collection[str]]  #: of each table, at either end
    settled: dict[str, Counter[str]] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    waiting: list[Staged] = field(
        default_factory=list
    )  #: places for rows of other tables that wait at the target
    removals: dict[str, int] = field(default_factory=dict)  #: staged rows that may take a row away
    bytes: int = 0
    unjudged: set[str] = field(default_factory=set)  #: staged, and may meet versions of the target
    holds: list[Hold] = field(default_factory=list)  #: stopped tables that wait for a person

    @classmethod
    def of(cls, link: Link, position: str, heartbeat: int, counted: Counted) -> LinkOutcome:
        """Before any row is carried."""
        opened = link.opened
        return cls(link.job, position, heartbeat, counted, dict(opened.stopped), opened.parents)

    def plan(self, table: str, settled: Counter[str], reasons: Mapping[str, Sequence[str]]) -> None:
        """Rows of the table by verdict; nothing of it is staged."""
        self.settled[table] = settled
        self._stop_by_verdict(table, reasons)

    def stage(self, place: Staged, done: StagedTable) -> None:
        """Changes of one table that tasks have staged at the place, or settled on the way."""
        table = place.shape.name
        self.settled[table] = done.settled
        self.bytes += done.bytes
        self.removals[table] = done.removals
        if done.rows:
            self.staged.append(place.believing(done.attempts, done.rows))
        self._stop_by_verdict(table, done.reasons)

    def fail(self, table: str, reasons: Sequence[str]) -> None:
        """So many conflicts of a staged table got no decision, each with the reason."""
        self.settled[table] = Counter({FAILED: len(reasons)})
        self._stop_by_verdict(table, {FAILED: some(reasons)})

    def stop(self, reasons: Mapping[str, str]) -> None:
        """Leave tables out, with those that refer to them: nothing of them is written, and no position moves."""
        self.stopped = with_children(self.stopped | dict(reasons), self.parents)
        self.staged = [each for each in self.staged if each.shape.name not in self.stopped]
        self.waiting = [each for each in self.waiting if each.shape.name not in self.stopped]

    def _stop_by_verdict(self, table: str, reasons: Mapping[str, Sequence[str]]) -> None:
        """Rows that would not come back the same stop their table (S1-34), as does a function that gave no decision."""
        settled = self.settled[table]
        if UNFAITHFUL in reasons:
            rows, why = how_many(settled[UNFAITHFUL], "row"), "; ".join(reasons[UNFAITHFUL])
            self.stop(
                {
                    table: f"{table}: {rows} of {self.job.source.name} would not come back the same from"
                    f" {self.job.target.name}: {why}. Mend the rows or the mapping; nothing of the table was written"
                }
            )
        elif FAILED in reasons:
            undecided = how_many(settled[FAILED], "conflict has", "conflicts have")
            why = f"{table}: {undecided} no decision: {'; '.join(reasons[FAILED])}"
            self.stop({table: f"{why}. Mend the function; nothing of the table was written"})

    def refuse_if_nothing_is_left(self) -> None:
        """A run that carries no table has failed. Raises MappingNotReversible, ResolverFailed, HookFailed or
        StructureChanged."""
        if self.carried:
            return
        settled = self.settled.values()
        kinds = [kind for verdict, kind in _FAILURES.items() if any(each[verdict] for each in settled)]
        raise (kinds or [StructureChanged])[0]("; ".join(self.stopped.values()))

    @property
    def placed(self) -> list[Staged]:
        """The target's transaction is given these."""
        return [*self.staged, *self.waiting]

    @property
    def carried(self) -> list[str]:
        return [table for table in self.counted.rows if table not in self.stopped]

    def check_complete(self) -> None:
        """Before anything is written: tasks read exactly the rows that the source counted in that cut."""
        staged = {each.shape.name: each.rows for each in self.staged}
        for table in self.carried:
            wanted = self.counted.rows[table]
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
            if not report.adds_up or report.acquired - report.retried != self.counted.rows[report.table]:
                raise CountMismatch(
                    f"{report.table}: the source counted {how_many(self.counted.rows[report.table], 'row')}:"
                    f" {report.model_dump()}"
                )
        left_out = [TableReport(table=table, stopped=why) for table, why in self.stopped.items()]
        return reports + left_out

    def _report(self, table: str, written: TableReport) -> TableReport:
        tolerances = {each.name: each.tracking.tolerance for each in self.job.tables if each.tracking}
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
            not_owned=self.counted.not_owned.get(table, 0),
            conflicts=written.conflicts + won + lost,
            merged=written.merged + merged,
            restored=written.restored,
            inserted_for_update=written.inserted_for_update,
            reinitializing=written.reinitializing,
            tolerance=tolerances.get(table),
        )
