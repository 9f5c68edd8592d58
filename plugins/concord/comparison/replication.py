"""One comparison of a replication's two sites. It writes nothing there but what any run of the replication does.

**No version tells what is under way, so that the log does.** A log of the comparison's own begins at the publisher, and
the publisher's cut is the snapshot of that beginning. The subscriber's cut follows once its level has passed it: all
that the publisher's cut shows is in both.

Whatever only one of the cuts holds was committed later. The comparison's log has it, so that its keys are known: they
are *in flight*. Every other key has to be the same.

Where both sites write, the subscriber's own log begins first, and the publisher passes that beginning before its cut.
Whatever the subscriber's users committed, and only one of the cuts holds, stands in that second log.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from concord.comparison.compared_table import MOST_VOLATILE, ComparedTable
from concord.comparison.remedies import altered_at
from concord.comparison.scan_pace import by_parts, scanned
from concord.comparison.side import sides
from concord.comparison.spark_steps import SparkSteps
from concord.databases.contract.compared_replica import ComparedLog, ComparedReplica, Touched
from concord.databases.contract.consumed import Texts
from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Cut
from concord.databases.contract.replication_ends import PublisherEnd, SubscriberEnd
from concord.jobs.comparison import CompareReplicationJob, CompareReport, Difference, Kind, TableComparison
from concord.jobs.replication import CALLS, ReplicationJob
from concord.messages.errors import ConcordError, HistoryLost, StructureChanged, WriteContended
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Meter, Tell, silent
from concord.transmission.steps import Steps, unheard

logger = logger_named("concord.compare")

#: Returns once the question is answered with yes; whoever compares lets a run of the replication see to that.
CatchUp = Callable[[Callable[[], bool]], None]


@dataclass(frozen=True)
class Way:
    """One direction, opened: the site whose transactions are read, and the one that replays them."""

    publisher: PublisherEnd
    published: Any
    subscriber: SubscriberEnd


def compare_replication(
    job: CompareReplicationJob,
    databases: Callable[[str], Dialect],
    spark: SparkSteps,
    catch_up: CatchUp,
    progress: Callable[[str], None] = unheard,
    tell: Tell = silent,
) -> CompareReport:
    """Compare the tables. A transaction that a person skipped is forgiven where they are equal (T17).

    Raises a ConcordError; WriteContended where the two sites could not be laid side by side meanwhile.
    """
    steps = Steps(progress, tell)
    with ExitStack() as stack:
        with steps.step("open"):
            ways = [
                _opened(stack, each, databases) for each in (job.forward, job.reverse) if each is not None
            ]
        return _Comparison(job, ways, spark, catch_up, steps).run()


def _opened(stack: ExitStack, job: ReplicationJob, databases: Callable[[str], Dialect]) -> Way:
    """Both ends, refused where a run would refuse them."""
    publisher = databases(job.source.dialect).replications.publisher(job)
    stack.callback(publisher.close)
    subscriber = databases(job.target.dialect).replications.subscriber(job)
    stack.callback(subscriber.close)
    published = publisher.inspect_published()
    subscriber.inspect_subscribed(published)
    _refuse_lost(publisher, subscriber)
    return Way(publisher, published, subscriber)


def _refuse_lost(publisher: PublisherEnd, subscriber: SubscriberEnd) -> None:
    """Raises HistoryLost. Runs go on meanwhile: the log may be confirmed beyond a level that was read before."""
    level = subscriber.reached()
    while True:
        try:
            publisher.refuse_lost(level, lambda: None)
        except HistoryLost:
            before, level = level, subscriber.reached()
            if level == before:
                raise
        else:
            return


@dataclass
class _Comparison:
    job: CompareReplicationJob
    ways: Sequence[Way]  #: forward, and reverse where both sites write
    spark: SparkSteps
    catch_up: CatchUp
    steps: Steps
    tables: list[TableComparison] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    stopped: dict[str, str] = field(default_factory=dict)
    replicas: list[ComparedReplica] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)

    def run(self) -> CompareReport:
        with ExitStack() as stack:
            levels = self._cut(stack)
            for table in self._chosen():
                self._compare(table)
        self._mend(levels)
        forward = self.job.forward
        return CompareReport(
            comparison=forward.transmission,
            synchronization=forward.synchronization,
            source=forward.source.name,
            target=forward.target.name,
            tables=tuple(self.tables),
            stopped=self.stopped,
            differences=tuple(self.differences),
            seconds=self.steps.seconds,
        )

    def _cut(self, stack: ExitStack) -> list[int]:
        """Open both cuts as the module says; the levels, one for each way, up to which both hold every entry."""
        forward, *back = self.ways
        with ExitStack() as logs:
            late = [self._begun(logs, way) for way in back]
            log = self._begun(logs, forward)
            self._join(stack, forward.publisher.replica(forward.published, log.snapshot), "source_cut")
            self._join(stack, forward.subscriber.replica(), "target_cut")
            with self.steps.step("under_way"):
                for each in (log, *late):
                    for part in each.touched():
                        self._take_down(part)
            return [each.level for each in (log, *late)]

    def _begun(self, logs: ExitStack, way: Way) -> ComparedLog:
        def wait(level: int) -> None:
            with self.steps.step("catch_up"):
                self.catch_up(lambda: way.subscriber.reached() >= level)

        with self.steps.long_step("log", Meter("begin a log for", self.job.forward.replication.name)):
            return logs.enter_context(way.publisher.compared(way.published, wait))

    def _join(self, stack: ExitStack, replica: ComparedReplica, step: str) -> None:
        stack.callback(replica.close)
        with self.steps.step(step):
            self.cuts.append(stack.enter_context(replica.cut()))
        self.replicas.append(replica)

    def _take_down(self, touched: Sequence[Touched]) -> None:
        """Their keys, before and after. Of a table that was emptied meanwhile nothing is known."""
        name, source, wanted = self.job.forward.replication.name, self.replicas[0], self._wanted
        keys: dict[str, list[Texts]] = defaultdict(list)
        for each in touched:
            if each.table == CALLS:
                raise WriteContended(
                    f"{name}: a procedure was called between both cuts, and nobody knows its rows; compare again"
                )
            if each.operation == "truncate":
                self.stopped[each.table] = "it was emptied between both cuts; compare again"
            elif each.table in source.shapes and each.table in wanted:
                keys[each.table] += each.rows
        for table, found in keys.items():
            if source.under_way(table, found) > MOST_VOLATILE:
                raise WriteContended(
                    f"{name}: more than {MOST_VOLATILE:,} rows of {table} changed between both cuts; compare again when"
                    " fewer do"
                )

    @property
    def _wanted(self) -> list[str]:
        tables, chosen = self.job.forward.replication.tables, self.job.chosen
        return [each.name for each in tables if chosen is None or each.name in chosen]

    def _chosen(self) -> list[str]:
        """The tables to compare; those that are left out are told of."""
        of, wanted = self.job.forward.replication, self._wanted
        kept = "the subscriber keeps every version of its rows, and no copy of them"
        why = {**self.stopped, **dict.fromkeys(of.history, kept)}
        self.stopped = {name: why[name] for name in wanted if name in why}
        return [name for name in wanted if name not in why]

    def _compare(self, table: str) -> None:
        if altered := self._altered(table):
            self.stopped |= altered
            return
        shapes, horizons = zip(*((each.shapes[table], each.horizon) for each in self.replicas), strict=True)
        ours, theirs = sides(self.replicas, shapes, horizons, self.cuts)
        meter = scanned(table, ours.extent, theirs.extent)
        with self.steps.long_step("scan", meter), self._unaltered(table):
            read = ComparedTable(self.spark, ours, theirs, {}, by_parts(meter), versioned=False)
            compared = read.differences(self.job.kept)
        try:
            if altered := self._altered(table):
                self.stopped |= altered
                return
            self.tables.append(compared.counts())
            self.differences += self._kept(table, compared.first())
        finally:
            compared.forget()
        log_event(
            logger,
            "table compared",
            **self.tables[-1].model_dump(exclude={"remedies", "written", "versions"}),
        )

    def _altered(self, table: str) -> dict[str, str]:
        return altered_at(self.replicas, [each.shapes for each in self.replicas], [table])

    @contextmanager
    def _unaltered(self, table: str) -> Iterator[None]:
        """An error while it is read ends its cut. Raises StructureChanged where it comes of an altered table."""
        try:
            yield
        except ConcordError as error:
            if altered := self._altered(table):
                raise StructureChanged("; ".join(altered.values())) from error
            raise

    def _kept(self, table: str, first: Sequence[tuple[str, Kind]]) -> Iterator[Difference]:
        """The first differences with both rows."""
        keys = [key for key, _ in first]
        source_rows, target_rows = (each.images(each.shapes[table], keys) for each in self.replicas)
        for key, kind in first:
            yield Difference(
                table=table,
                key=tuple(json.loads(key)),
                kind=kind,
                source_row=source_rows.get(key),
                target_row=target_rows.get(key),
            )

    def _mend(self, levels: Sequence[int]) -> None:
        """Whatever a person skipped is made good in the tables that are equal."""
        equal = [each.table for each in self.tables if each.proves_equal]
        for way, level in zip(self.ways, levels, strict=True):
            way.subscriber.mend(equal, level)
