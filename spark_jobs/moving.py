"""Move: every table that changed goes through acquire, manipulate, detect, resolve and into staging."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from concord.brake import Hold
from concord.databases.dialect import Progress, Shape, Snapshot, SourceEnd, Staged, TargetEnd
from concord.errors import (
    CountMismatch,
    MappingNotReversible,
    ResolverFailed,
    StructureChanged,
)
from concord.event_log import log_event
from concord.link import LinkJob, TableReport
from concord.policy import KINDS, Policy
from spark_jobs.acquire import acquire
from spark_jobs.custom import FAILED, Layout, ask, function_of
from spark_jobs.damage import Damaged
from spark_jobs.detect import MOST_BROADCAST, detect
from spark_jobs.manipulate import UNFAITHFUL, manipulate, refuse_unfaithful
from spark_jobs.opening import Opened, with_children
from spark_jobs.resolve import UNDER_LOCK, resolve, unopposed
from spark_jobs.straight import Route, goes_straight, stage_by_the_driver, stage_straight
from spark_jobs.wording import worded
from spark_jobs.write import STOPPING, StagedTable, stage

logger = logging.getLogger("concord.link")


@dataclass
class Watch:
    """Seconds per step, in the order the steps were first taken; and who wants to hear of them."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.progress(name)
        began = monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + monotonic() - began, 3)


@dataclass
class Moved:
    """What the source had counted, what was settled on the way, and what reached staging."""

    counted: Mapping[str, int]
    tolerances: Mapping[str, float] = field(default_factory=dict)  #: of tables with marks of the application
    settled: dict[str, Counter[str]] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    waiting: list[Staged] = field(
        default_factory=list
    )  #: places for rows of other tables that wait at the target
    removals: dict[str, int] = field(default_factory=dict)  #: staged rows that may take a row away
    bytes: int = 0
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
        """What the target's transaction is given."""
        return [*self.staged, *self.waiting]

    @property
    def carried(self) -> list[str]:
        return [table for table in self.counted if table not in self.stopped]

    def check_complete(self) -> None:
        """Before anything is written: Spark read exactly the rows that the source counted in that snapshot."""
        staged = {each.shape.name: each.rows for each in self.staged}
        for table in self.carried:
            counted = self.counted[table]
            read = staged.get(table, 0) + sum(self.settled.get(table, Counter()).values())
            if read != counted:
                raise CountMismatch(
                    f"{table}: {counted} rows changed at the source, but {read} were read; nothing was written"
                )

    def reports(self, written: Mapping[str, TableReport]) -> list[TableReport]:
        """Rows per outcome of every table. Raises CountMismatch when they do not add up (rule 11)."""
        reports = [
            self._report(table, written.get(table, TableReport(table=table))) for table in self.carried
        ]
        for report in reports:
            if not report.adds_up or report.acquired - report.retried != self.counted[report.table]:
                raise CountMismatch(
                    f"{report.table}: {self.counted[report.table]} rows were counted at the source:"
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
            converged=written.converged + settled["converged"] + settled["unite"],
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
            reinitializing=written.reinitializing,
            tolerance=self.tolerances.get(table),
        )


@dataclass(frozen=True)
class Move:
    """Carries tables from the source's snapshot to the target's staging."""

    job: LinkJob
    source: SourceEnd
    target: TargetEnd
    opened: Opened
    snapshot: Snapshot
    spark: Callable[[], SparkSession]
    watch: Watch
    met: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  #: keys of conflicts that the write step found

    def run(self) -> Moved:
        """All tables that changed. Spark is not even started when none did."""
        with self.watch.step("count"):
            counted = self.source.count_arrived(
                list(self.opened.shapes.values()), self._since(), self.opened.excluded
            )
            changed = [name for name, rows in counted.items() if rows]
            shapes = [self.opened.target_shapes[name] for name in changed]
            related = {name: self.opened.related.session.position.of(name) for name in changed}
            candidates = self.target.count_arrived(shapes, related, self.opened.related_excluded)
            not_owned = self.source.count_not_owned(
                [self.opened.shapes[name] for name in changed], self._since()
            )
        for name, rows in not_owned.items():
            if rows:
                log_event(logger, "rows changed by a site that does not own them", table=name, rows=rows)
        tolerances = {t.name: t.tracking.tolerance for t in self.job.tables if t.tracking}
        moved = Moved(counted, tolerances, not_owned=not_owned, stopped=dict(self.opened.stopped))
        routes = list[Route]()
        for ordinal, name in enumerate(changed):
            log_event(logger, "changes found", table=name, rows=counted[name], candidates=candidates[name])
            if why := _not_callable(self.opened.target_shapes[name].policy):
                moved.settled[name] = Counter({FAILED: counted[name]})
                moved.stop({name: f"{name}: {why}"}, self.opened.parents)
                continue
            routes += self._carry(name, ordinal, moved, candidates[name])
        if routes:
            self._stage_straight(routes, moved)
        if not self.job.plan_only:
            moved.waiting += self._waiting(moved, len(changed))
        if changed:
            read = [self.opened.shapes[name] for name in changed]
            moved.stop(self.source.altered_since(read), self.opened.parents)
        _refuse_if_nothing_is_left(moved)
        return moved

    def _waiting(self, moved: Moved, first: int) -> Sequence[Staged]:
        """Tables of which rows wait at the target, and of which nothing was staged."""
        staged = {each.shape.name for each in moved.staged}
        others = [shape for name, shape in self.opened.target_shapes.items() if name not in staged]
        return self.target.waiting(others, first)

    def _since(self) -> dict[str, str]:
        position = self.opened.going_on.session.position
        return {name: position.of(name) for name in self.opened.shapes}

    def _carry(self, name: str, ordinal: int, moved: Moved, candidates: int) -> list[Route]:
        """One table's changes into staging, or into the counts of a plan; or the straight route that they will take."""
        count = moved.counted[name]
        source, target = self.opened.shapes[name], self.opened.target_shapes[name]
        since = self.opened.going_on.session.position.of(name)
        reading = self.source.readers(source, since, self.opened.excluded, count, self.snapshot)
        meets_nothing = not candidates and not self.met.get(name)
        if meets_nothing and goes_straight(source, target) and not self.job.plan_only:
            with self.watch.step("stage"):
                return [Route(reading, self.target.create_staging(target, ordinal))]
        with self.watch.step("start_spark"):
            spark = self.spark()
        changes = manipulate(acquire(spark, reading), source, target, tuple(target.base_types))
        decided = (
            unopposed(changes, asks=target.policy.asks)
            if meets_nothing
            else self._judged(changes, name, candidates)
        )
        resolved = refuse_unfaithful(decided)
        if self.job.plan_only:
            self._plan(name, resolved, moved)
        else:
            self._stage(name, ordinal, resolved, moved)
        return []

    def _judged(self, changes: DataFrame, name: str, candidates: int) -> DataFrame:
        """Each change with the verdict on it and on what it meets at the target."""
        shape, position = self.opened.target_shapes[name], self.opened.related.session.position.of(name)
        met = self.met.get(name, ())
        told = self.target.candidates(shape, position, self.opened.related_excluded, met)
        detected = detect(
            changes,
            acquire(self.spark(), told),
            shape.key_aliases,
            self.job.priorities,
            broadcast=candidates <= MOST_BROADCAST and self.job.interval is None,
            damaged=self._damaged(shape),
            seen=tuple(shape.compared.values()),
        )
        resolved = resolve(detected, shape.policy.bound(self.job.priorities), shape.compared)
        return ask(resolved, Layout.of(shape)) if shape.policy.asks else resolved

    def _damaged(self, shape: Shape) -> Damaged | None:
        """Only a backfill looks at the rows behind equal versions."""
        if self.job.interval is None:
            return None
        rest = [alias for alias in shape.aliases if alias not in shape.key_aliases]
        return Damaged(tuple(rest), self.opened.source_site.origin)

    def _plan(self, name: str, resolved: DataFrame, moved: Moved) -> None:
        with self.watch.step("plan"), worded(name):
            found = resolved.groupBy("verdict").agg(
                F.count("*").alias("rows"), F.min("reason").alias("reason")
            )
            rows = found.collect()
        moved.settled[name] = Counter({row["verdict"]: row["rows"] for row in rows})
        self._stop(
            name, {row["verdict"]: [row["reason"]] for row in rows if row["verdict"] in STOPPING}, moved
        )

    def _stage(self, name: str, ordinal: int, resolved: DataFrame, moved: Moved) -> None:
        with self.watch.step("stage"), worded(name):
            place = self.target.create_staging(self.opened.target_shapes[name], ordinal)
            shape, login = place.shape, self.target.staging_login()
            done = stage(resolved, shape.aliases, login, place.relation, shape.staged_beside)
        self._staged(place, done, moved)

    def _stage_straight(self, routes: Sequence[Route], moved: Moved) -> None:
        names = [route.place.shape.name for route in routes]
        stage_all = stage_by_the_driver
        if sum(moved.counted[name] for name in names) >= self.job.spark_from:
            with self.watch.step("start_spark"):
                stage_all = partial(stage_straight, self.spark())
        with self.watch.step("stage"), worded(names[0] if len(names) == 1 else f"{len(names)} tables"):
            every = stage_all(routes, self.target.staging_login(), self.job.source.readers)
        for route, done in zip(routes, every, strict=True):
            self._staged(route.place, done, moved)

    def _staged(self, place: Staged, done: StagedTable, moved: Moved) -> None:
        name = place.shape.name
        moved.settled[name] = done.settled
        moved.bytes += done.bytes
        moved.removals[name] = done.removals
        if done.rows:
            moved.staged.append(place.believing(done.attempts, done.rows))
        self._stop(name, done.reasons, moved)

    def _stop(self, name: str, reasons: Mapping[str, Sequence[str]], moved: Moved) -> None:
        """Rows that would not come back the same stop their table (S1-34), as does a function that gave no decision."""
        settled = moved.settled[name]
        if UNFAITHFUL in reasons:
            why = (
                f"{name}: {settled[UNFAITHFUL]} rows of {self.job.source.name} would not come back the same"
                f" from {self.job.target.name}: {'; '.join(reasons[UNFAITHFUL])}. Mend the rows or the mapping; nothing"
                " of the table was written"
            )
            moved.stop({name: why}, self.opened.parents)
        elif FAILED in reasons:
            why = f"{name}: {settled[FAILED]} conflicts have no decision: {'; '.join(reasons[FAILED])}"
            moved.stop(
                {name: f"{why}. Mend the function; nothing of the table was written"}, self.opened.parents
            )


def _not_callable(policy: Policy) -> str | None:
    """Why somebody else's function cannot be asked; looked at before it is needed, since conflicts are rare."""
    try:
        for name, entry_point in policy.named:
            if KINDS[name].takes_function:
                function_of(entry_point)
    except ResolverFailed as error:
        return error.message
    return None


def _refuse_if_nothing_is_left(moved: Moved) -> None:
    """A run that carries no table has failed. Raises MappingNotReversible, ResolverFailed or StructureChanged."""
    if moved.carried:
        return
    kinds = {UNFAITHFUL: MappingNotReversible, FAILED: ResolverFailed}
    found = [kinds[verdict] for verdict in kinds if any(each[verdict] for each in moved.settled.values())]
    raise (found or [StructureChanged])[0]("; ".join(moved.stopped.values()))
