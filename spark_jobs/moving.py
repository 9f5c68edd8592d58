"""Move: every table that changed goes through acquire, manipulate, detect, resolve and into staging."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from concord.databases.contract.dialect import Dialect, Snapshot, SourceEnd, Staged, TargetEnd
from concord.databases.contract.reading import Reading, Relay, readers_for
from concord.databases.registry import dialect
from concord.jobs.link import LinkJob
from concord.messages.errors import MappingNotReversible, ResolverFailed, StructureChanged
from concord.messages.event_log import log_event
from concord.messages.how_many import how_many
from concord.messages.pace import Meter, of_tables
from concord.rules.merging import Custom
from concord.rules.policy import KINDS, Policy
from concord.transmission.brake import may_be_held
from concord.transmission.errors import worded
from concord.transmission.opening import Opened
from concord.transmission.outcome import Moved
from concord.transmission.route import Route, goes_straight
from concord.transmission.staged_table import StagedTable
from concord.transmission.steps import Steps
from concord.transmission.verdicts import FAILED, UNFAITHFUL
from spark_jobs import straight

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("concord.link")


class Earlier(NamedTuple):
    """The findings of the same run before it begins anew."""

    met: Mapping[str, Sequence[str]] = MappingProxyType({})  #: keys of conflicts that the write step found
    judged_first: Collection[str] = ()  #: tables that Spark judges, however few versions they may meet


@dataclass(frozen=True)
class Move:
    """Carries tables from the source's snapshot to the target's staging."""

    job: LinkJob
    source: SourceEnd
    target: TargetEnd
    opened: Opened
    snapshot: Snapshot
    spark: Callable[[], SparkSession]
    steps: Steps
    earlier: Earlier

    @property
    def met(self) -> Mapping[str, Sequence[str]]:
        return self.earlier.met

    def run(self) -> Moved:
        """All tables that changed. Spark is not even started when none did."""
        with self.steps.step("count"):
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
        return self.target.waiting(others, first) if others else []

    def _since(self) -> dict[str, str]:
        position = self.opened.going_on.session.position
        return {name: position.of(name) for name in self.opened.shapes}

    def _carry(self, name: str, ordinal: int, moved: Moved, candidates: int) -> list[Route]:
        """One table's changes into staging, or into the counts of a plan; or the straight route that they will
        take."""
        count = moved.counted[name]
        source, target = self.opened.shapes[name], self.opened.target_shapes[name]
        since = self.opened.going_on.session.position.of(name)
        straight_on = (
            goes_straight(self.job, source, target, candidates) and name not in self.earlier.judged_first
        )
        read = source.relayed if straight_on else source
        reading = self.source.readers(read, since, self.opened.excluded, count, self.snapshot)
        if straight_on:
            if candidates:
                moved.unjudged.add(name)
            with self.steps.step("stage"):
                place = self.target.create_staging(target.relayed, ordinal)
                return [Route(reading, place, may_be_held(self.job, name, count))]
        self._by_spark(name, ordinal, reading, moved, candidates)
        return []

    def _by_spark(self, name: str, ordinal: int, reading: Reading, moved: Moved, candidates: int) -> None:
        """A table that is mapped, or whose changes may meet very many: what becomes of each is Spark's to find out."""
        from spark_jobs.steps import table as by_spark  # noqa: PLC0415 - most links need no Spark, which is slow to import

        with self.steps.step("start_spark"):
            spark = self.spark()
        resolved = by_spark.resolved(self, spark, reading, name, candidates)
        if self.job.plan_only:
            moved.settled[name], reasons = by_spark.planned(self, name, resolved, moved.counted[name])
            self._stop(name, reasons, moved)
        else:
            place, done = by_spark.staged(self, name, ordinal, resolved, moved.counted[name])
            self._staged(place, done, moved)

    def _stage_straight(self, routes: Sequence[Route], moved: Moved) -> None:
        names = [route.place.shape.name for route in routes]
        rows = sum(moved.counted[name] for name in names)
        readers = readers_for(rows, self.job.source.readers, len(routes))
        said = of_tables(names)
        meter, look = Meter("stage", said, of=rows), _nothing
        stage_all = partial(straight.stage_by_the_driver, self._relays())
        if rows >= self.job.spark_from:
            readers = self.job.source.readers
            with self.steps.step("start_spark"):
                stage_all = partial(straight.stage_by_spark, self.spark(), self._dialect.relay)
            look = _by_tasks(self.spark(), meter)
        login = self.target.staging_login()
        with self.steps.long_step("stage", meter, look), worded(said):
            every = stage_all(routes, login, readers)
        for route, done in zip(routes, every, strict=True):
            self._staged(route.place, done, moved)

    @property
    def _dialect(self) -> Dialect:
        return dialect(self.job.source.dialect)

    def _relays(self) -> Iterator[Relay]:
        """The first one costs no login."""
        yield self._dialect.between(self.source, self.target)
        while True:
            yield self._dialect.relay()

    def _staged(self, place: Staged, done: StagedTable, moved: Moved) -> None:
        name = place.shape.name
        moved.settled[name] = done.settled
        moved.bytes += done.bytes
        moved.removals[name] = done.removals
        if done.rows:
            moved.staged.append(place.believing(done.attempts, done.rows))
        self._stop(name, done.reasons, moved)

    def _stop(self, name: str, reasons: Mapping[str, Sequence[str]], moved: Moved) -> None:
        """Rows that would not come back the same stop their table (S1-34), as does a function that gave no
        decision."""
        settled = moved.settled[name]
        if UNFAITHFUL in reasons:
            why = (
                f"{name}: {how_many(settled[UNFAITHFUL], 'row')} of {self.job.source.name} would not come back the same"
                f" from {self.job.target.name}: {'; '.join(reasons[UNFAITHFUL])}. Mend the rows or the mapping; nothing"
                " of the table was written"
            )
            moved.stop({name: why}, self.opened.parents)
        elif FAILED in reasons:
            undecided = how_many(settled[FAILED], "conflict has", "conflicts have")
            why = f"{name}: {undecided} no decision: {'; '.join(reasons[FAILED])}"
            moved.stop(
                {name: f"{why}. Mend the function; nothing of the table was written"}, self.opened.parents
            )


def _nothing() -> None:
    """The driver itself carries few rows."""


def _by_tasks(spark: SparkSession, meter: Meter) -> Callable[[], None]:
    from spark_jobs.steps.tasks import by_tasks  # noqa: PLC0415 - see `Move._by_spark`

    return by_tasks(spark, meter)


def _not_callable(policy: Policy) -> str | None:
    """Why somebody else's function cannot be asked; looked at before it is needed, since conflicts are rare."""
    functions = [
        Custom.of(argument).entry_point for name, argument in policy.named if KINDS[name].takes_function
    ]
    if not functions:
        return None
    from spark_jobs.steps.custom import function_of  # noqa: PLC0415 - see `Move._by_spark`

    try:
        for each in functions:
            function_of(each)
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
