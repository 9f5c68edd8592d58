"""An initialization: every table in key ranges, each compared at both sites and written where it differs (F09)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from time import monotonic

from concord.databases.contract.ends import Progress
from concord.databases.contract.initialization import (
    Initialization,
    Key,
    KeyRange,
    ListenersCame,
    Passage,
    Progressed,
    TablePassages,
    Written,
)
from concord.databases.contract.rows import Staged
from concord.databases.registry import dialect_of_all
from concord.jobs.initialization import How, InitializationJob, InitializationReport
from concord.messages.errors import LinkFailed
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Meter, Tell, silent, told
from concord.rules.initialization_rule import Way
from concord.transmission.steps import unheard
from spark_jobs.application import Spark, run

logger = logger_named("concord.initialize")

#: Key ranges that Spark reads at once, for each reader of a site.
RANGES_PER_READER = 2


def initialize(
    job: InitializationJob,
    spark: Spark,
    progress: Progress = unheard,
    tell: Tell = silent,
) -> InitializationReport:
    """Give the pair its common history. May be killed at any instant; the next one goes on where it stopped.

    Raises a ConcordError; then no link of the pair carries a table that is not initialized.
    """
    began = monotonic()
    open_pair = dialect_of_all([job.link.source, job.link.target]).initialization
    with open_pair(job) as initialization:
        planned, ordinals = initialization.begin(progress, tell), count()
        try:
            done = [_pass(initialization, each, spark, progress, tell, ordinals) for each in planned]
            tables = initialization.finish(done, progress)
        finally:
            initialization.clean_up()
    return InitializationReport(
        synchronization=job.link.synchronization,
        tables=tuple(tables),
        seconds=round(monotonic() - began, 3),
    )


def _pass(
    initialization: Initialization,
    state: Progressed,
    spark: Spark,
    progress: Progress,
    tell: Tell,
    ordinals: Iterator[int],
) -> Progressed:
    if state.how is How.EQUAL or state.phase == "passed":
        return state
    meter = Meter("initialize", state.table, of=state.total, done=state.looked_at, before=state.looked_at)
    with initialization.about(state.table):
        table = initialization.open_table(state, progress)
        with told(tell, meter):
            TablePass(initialization, table, spark, progress, meter, ordinals).run()
    _log(table.state, meter)
    return table.state


def _log(state: Progressed, meter: Meter) -> None:
    log_event(
        logger,
        "table initialized",
        table=state.table,
        how=state.how.value,
        rows=state.looked_at,
        rows_per_second=round(meter.pace.rate),
        errors=len(state.errors),
    )


@dataclass(frozen=True)
class Staging:
    """Rows of some key ranges on their way into staging, and the rule they were decided by."""

    rule: Way
    rows: Future[Staged]


@dataclass(frozen=True)
class Window:
    """Key ranges that Spark reads at once; already on their way where the target holds nothing there."""

    ranges: list[KeyRange]
    ahead: Staging | None


@dataclass
class TablePass:
    """Takes one table through its key ranges."""

    initialization: Initialization
    table: TablePassages
    spark: Spark
    progress: Progress
    meter: Meter
    ordinals: Iterator[int]

    def run(self) -> None:
        if self.table.goes_straight:
            self._load()
        if self.table.state.phase != "passed":
            self._compare()
        self._retry()

    def _load(self) -> None:
        """Rows go straight into the empty table; what it does not take so is staged, and the database tells why."""
        begun_before = self.table.state.bound
        try:
            with (
                self.initialization.without_indexes(self.table, self.progress),
                self.initialization.load(self.table, self.progress, self.meter) as load,
            ):
                for each in load.declined():
                    # The staged and written rows of a killed run may stand there already.
                    self._take_alone(each, compared=begun_before is not None and each.lower == begun_before)
        except ListenersCame as came:
            log_event(logger, "rows need versions", why=str(came))

    def _take_alone(self, each: KeyRange, *, compared: bool) -> None:
        with ThreadPoolExecutor(1) as pool:
            if compared:
                self._compared([each])
            else:
                self._written(self._staged(pool, [each]))
        self.meter.done = self.table.state.looked_at

    def _compare(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            window: Window | None = self._prepared(pool, self.table.state.bound)
            while window is not None:
                window = self._taken(pool, window)
                self.meter.done = self.table.state.looked_at

    def _prepared(self, pool: Executor, lower: Key | None) -> Window:
        """The next key ranges. Plain ones are staged while those before them are written."""
        first = self.table.ways[0]
        count = max(first.readers, 1) * RANGES_PER_READER
        ranges = self.table.next_ranges(lower, count)
        if not all(first.target_is_empty(each) for each in ranges):
            return Window(ranges, None)
        return self._staged(pool, ranges)

    def _staged(self, pool: Executor, ranges: list[KeyRange]) -> Window:
        """Ranges that meet nothing at the target, on their way into staging."""
        first = self.table.ways[0]
        rule = first.way(self.table.state)
        return Window(ranges, Staging(rule, pool.submit(self._stage, first, rule, ranges, empty=True)))

    def _taken(self, pool: Executor, window: Window) -> Window | None:
        """Some key ranges, in both directions where the second may have something to say; returns the next."""
        upper, ahead = window.ranges[-1].upper, window.ahead
        if ahead is not None:
            ahead.rows.result()
        following = None if upper is None else self._prepared(pool, upper)
        if ahead is not None:
            self._written(window)
        else:
            self._compared(window.ranges)
        return following

    def _written(self, window: Window) -> None:
        first = self.table.ways[0]
        rows, written = self._way(first, window.ranges, ahead=window.ahead, counted=True)
        self.table.advance(window.ranges, rows, [(first.name, written)])

    def _compared(self, ranges: list[KeyRange]) -> None:
        rows, differing = self._differing(ranges)
        made = [(way.name, self._way(way, differing)[1]) for way in self.table.ways if differing]
        self.table.advance(ranges, rows, made)

    def _differing(self, ranges: list[KeyRange]) -> tuple[int, list[KeyRange]]:
        """The ranges that do not read alike at both sites, versions included; and rows looked at."""
        first, second = self.table.ways
        if not self.table.comparable:
            return sum(first.content(each)[0] for each in ranges), ranges
        rows, differing = 0, []
        for each in ranges:
            here, there = first.content(each), second.content(each)
            rows += max(here[0], there[0])
            self.meter.done += max(here[0], there[0])
            if here != there:
                differing.append(each)
        return rows, differing

    def _way(
        self, way: Passage, ranges: list[KeyRange], *, ahead: Staging | None = None, counted: bool = False
    ) -> tuple[int, Written]:
        """Rows staged, and what became of them. Staged anew when the site gets listeners meanwhile.

        `counted`: the meter has not counted the rows yet.
        """
        while True:
            rule = ahead.rule if ahead else way.way(self.table.state)
            staged = ahead.rows.result() if ahead else self._stage(way, rule, ranges, empty=False)
            errors = len(self.table.state.errors)
            chosen = ranges if staged.rows else []
            try:
                written = way.write(
                    staged,
                    chosen,
                    announced=rule.announced,
                    errors=errors,
                    progress=self.progress,
                    meter=self.meter if counted else None,
                )
            except ListenersCame as came:
                log_event(logger, "staged again", why=str(came))
                ahead = None
                continue
            finally:
                way.drop(staged)
            return staged.rows, written

    def _stage(self, way: Passage, rule: Way, ranges: list[KeyRange], *, empty: bool) -> Staged:
        from spark_jobs.steps.initialized_ranges import decided  # noqa: PLC0415 - most loads need no Spark

        self.progress("stage")
        spark, place = self.spark(), way.stage(next(self.ordinals))
        try:
            return decided(spark, way, self.table.state, ranges, rule, place, empty=empty)
        except LinkFailed as error:
            raise way.explained(ranges, error) from error

    def _retry(self) -> None:
        """Rows that were refused, once more and together: what was in their way may have gone since."""
        for way in self.table.ways:
            if keys := self.table.refused_at(way.name):
                _, written = self._way(way, [keys])
                self.table.note([(way.name, written)])


def work(job: InitializationJob, spark: Spark, progress: Progress, tell: Tell) -> InitializationReport:
    """The application's work: one initialization, logged."""
    name = job.link.synchronization
    report = initialize(job, spark, progress, tell)
    log_event(logger, "initialized", synchronization=name, seconds=report.seconds)
    return report


def main() -> int:
    """As submitted; its status."""
    return run(InitializationJob, work)


if __name__ == "__main__":
    sys.exit(main())
