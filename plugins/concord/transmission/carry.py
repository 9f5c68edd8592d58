"""Carry: the changes of every table that changed go into staging, straight or with Spark's verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from concord.databases.contract.ends import Cut
from concord.databases.contract.reading import Reading, readers_for
from concord.databases.contract.rows import Staged
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Meter, of_tables
from concord.rules.custom_function import why_not_callable
from concord.rules.hook_function import why_unknown
from concord.transmission.ask import ask
from concord.transmission.count import Counted
from concord.transmission.errors import worded
from concord.transmission.link import Changes, Link
from concord.transmission.outcome import LinkOutcome
from concord.transmission.route import Route, goes_straight, may_be_held
from concord.transmission.straight import Carriers, needs_spark
from concord.transmission.verdicts import FAILED, UNHOOKED

logger = logger_named("concord.link")


class Earlier(NamedTuple):
    """The findings of an earlier round of the same run."""

    met: Mapping[str, Sequence[str]] = MappingProxyType({})  #: keys of conflicts that the write step found
    judged_first: Collection[str] = ()  #: tables that Spark judges, however few versions they may meet
    failed: Mapping[str, str] = MappingProxyType({})  #: tables whose rows could not be moved, and why


@dataclass(frozen=True)
class Carry:
    """Carries tables from the source's cut to the target's staging; fills the outcome."""

    link: Link
    cut: Cut
    counted: Counted
    earlier: Earlier
    outcome: LinkOutcome

    def run(self) -> None:
        """All tables that changed. Spark is not even started when none did."""
        self.outcome.stop(self.earlier.failed)
        link = self.link
        changed = [name for name in self.counted.changed if name not in self.outcome.stopped]
        routes = [route for ordinal, name in enumerate(changed) for route in self._table(name, ordinal)]
        if routes:
            self._straight(routes)
        if not link.job.plan_only:
            self.outcome.waiting += self._waiting()
        if changed:
            read = [link.opened.shapes[name] for name in changed]
            self.outcome.stop(link.source.altered_since(read))
        self.outcome.refuse_if_nothing_is_left()

    def _table(self, name: str, ordinal: int) -> list[Route]:
        """One table's changes into staging, or into the counts of a plan; or the straight route that they will take."""
        rows, candidates = self.counted.rows[name], self.counted.candidates[name]
        log_event(logger, "changes found", table=name, rows=rows, candidates=candidates)
        target = self.link.opened.target_shapes[name]
        if why := why_not_callable(target.policy):
            self.outcome.settled[name] = Counter({FAILED: rows})
            self.outcome.stop({name: f"{name}: {why}"})
            return []
        if why := self._unknown_hook(name):
            self.outcome.settled[name] = Counter({UNHOOKED: rows})
            self.outcome.stop({name: why})
            return []
        source = self.link.opened.shapes[name]
        if goes_straight(self.link.job, source, target, candidates) and name not in self.earlier.judged_first:
            return [self._route(name, ordinal)]
        self._judged(name, ordinal)
        return []

    def _unknown_hook(self, name: str) -> str | None:
        job = self.link.job
        (hook,) = (table.hooks.get(job.target.name) for table in job.tables if table.name == name)
        return why_unknown(hook, job.target.name, name)

    def _route(self, name: str, ordinal: int) -> Route:
        """Of a table whose changes the target judges."""
        opened, rows = self.link.opened, self.counted.rows[name]
        reading = self._reading(name, relayed=True)
        if self.counted.candidates[name]:
            self.outcome.unjudged.add(name)
        with self.link.steps.step("stage"):
            place = self.link.target.create_staging(opened.target_shapes[name].relayed, ordinal)
        return Route(reading, place, may_be_held(self.link.job, name, rows))

    def _judged(self, name: str, ordinal: int) -> None:
        """A table that is mapped, or whose changes may meet very many: what becomes of each is Spark's to find out."""
        reading, spark = self._reading(name), self.link.spark
        rows, candidates = self.counted.rows[name], self.counted.candidates[name]
        changes = Changes(name, ordinal, reading, rows, candidates, self.earlier.met.get(name, ()))
        with self.link.steps.step("start_spark"):
            spark.start()
        if self.link.job.plan_only:
            self.outcome.plan(name, *spark.planned(self.link, changes))
        else:
            self.outcome.stage(*spark.staged(self.link, changes))

    def _reading(self, name: str, *, relayed: bool = False) -> Reading:
        shape = self.link.opened.shapes[name]
        return self.link.source.readers(
            shape.relayed if relayed else shape,
            self.link.position.of(name),
            self.link.opened.excluded,
            self.counted.rows[name],
            self.cut,
        )

    def _straight(self, routes: Sequence[Route]) -> None:
        """All tables that go straight, together."""
        link, names = self.link, [route.place.shape.name for route in routes]
        rows = sum(self.counted.rows[name] for name in names)
        meter, readers = Meter("stage", of_tables(names), of=rows), link.job.source.readers
        if not needs_spark(rows, link.job.spark_from):
            readers = readers_for(rows, readers, len(routes))
        carriers = Carriers(link.dialect.relay, link.spark, link.steps)
        between = partial(link.dialect.between, link.source, link.target)
        stage_all, look = carriers.choose(rows, link.job.spark_from, meter, between)
        login = link.target.staging_login()
        with link.steps.long_step("stage", meter, look), worded(meter.what):
            every = stage_all(routes, login, readers)
        for route, done in zip(routes, every, strict=True):
            self.outcome.stage(route.place, done)
        ask(link, self.outcome, [route.place.shape.name for route in routes if self._may_ask(route.place)])

    def _may_ask(self, place: Staged) -> bool:
        """Is there a function, and a version at the target that may be a conflict?"""
        name = place.shape.name
        return place.shape.policy.asks and bool(self.counted.candidates[name] or self.earlier.met.get(name))

    def _waiting(self) -> Sequence[Staged]:
        """Tables of which rows wait at the target, and of which nothing was staged."""
        staged = {each.shape.name for each in self.outcome.staged}
        shapes = self.link.opened.target_shapes
        others = [shape for name, shape in shapes.items() if name not in staged]
        return self.link.target.waiting(others, len(self.counted.changed)) if others else []
