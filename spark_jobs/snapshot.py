"""One refresh of one snapshot: open, read, stage, write, report (S4-005 to S4-025)."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from concord.databases.contract.ends import Cut, Progress
from concord.databases.contract.reading import Part, Reading
from concord.databases.contract.snapshot_ends import (
    SnapshotSourceEnd,
    SnapshotTargetEnd,
    StagedPlace,
    Written,
)
from concord.databases.registry import dialect
from concord.jobs.link import SPARK_FROM
from concord.jobs.snapshot import SnapshotJob, SnapshotReport
from concord.messages.errors import CountMismatch
from concord.messages.event_log import log_event, logger_named
from concord.messages.how_many import how_many
from concord.messages.pace import Meter, Tell, silent
from concord.transmission.errors import worded
from concord.transmission.steps import Steps, unheard
from concord.transmission.straight import Carriers
from concord.versions.position import LinkPosition, Session
from spark_jobs.application import Spark, run
from spark_jobs.by_spark import BySpark
from spark_jobs.snapshot_opening import Going, open_snapshot

logger = logger_named("concord.snapshot")


def refresh(
    job: SnapshotJob, spark: Spark, progress: Progress = unheard, tell: Tell = silent
) -> SnapshotReport:
    """Refresh the snapshot once. May be killed at any instant and repeated any number of times. `tell` hears how
    far it is where it takes long.

    Raises a ConcordError; then the destination is as it was, and no position has moved.
    """
    steps = Steps(progress, tell)
    with steps.step("open"):
        source = dialect(job.source.dialect).snapshots.source(job)
    try:
        target = dialect(job.target.dialect).snapshots.target(job)
        try:
            return Refresh(job, source, target, spark, steps).run()
        finally:
            target.close()
    finally:
        source.close()


@dataclass(frozen=True)
class Rows:
    """The rows that a refresh carries."""

    snapshot: str
    reading: Reading
    place: StagedPlace
    private: bool  #: no message tells a value

    def parts(self, login: str) -> list[Part]:
        """One for each query."""
        where = (login, self.place.relation, self.place.columns)
        return [
            Part(self.snapshot, self.reading, query, *where, self.private, weighed=False, judged=False)
            for query in self.reading.queries
        ]


@dataclass(frozen=True)
class Refresh:
    """Carries a snapshot's rows from its source to its destination."""

    job: SnapshotJob
    source: SnapshotSourceEnd
    target: SnapshotTargetEnd
    spark: Spark
    steps: Steps

    def run(self) -> SnapshotReport:
        with self.steps.step("inspect"):
            going = open_snapshot(self.job, self.source, self.target, self.steps.progress)
        try:
            self.steps.progress("cut")
            with self.source.cut() as cut:
                if self.job.plan_only:
                    return self._report(going, self._planned(going, cut), 0)
                session = self._session(going, cut)
                staged, size = self._staged(going, cut)
            self.source.refuse_rewritten()
            return self._report(going, self._written(going, session, staged), size)
        finally:
            with self.steps.step("clean_up"):
                self.target.drop_staging()

    def _session(self, going: Going, cut: Cut) -> Session:
        """The session of this refresh that both ends will remember."""
        heartbeat = 0
        if self.job.snapshot.incremental:
            self.steps.progress("heartbeat")
            heartbeat = self.source.beat()
        return Session(
            id=self.job.transmission,
            source_origin=going.source_site.origin,
            target_origin=going.target_site.origin,
            heartbeat=heartbeat,
            position=LinkPosition(cut.position),
        )

    def _counted(self, going: Going, cut: Cut) -> tuple[Reading, int | None]:
        """How what must be staged is read, and how many rows that are (None: a view's, which nobody counts)."""
        with self.steps.step("count"):
            if going.since is None:
                return self.source.all_rows(cut)
            return self.source.changed_rows(going.since, cut)

    def _staged(self, going: Going, cut: Cut) -> tuple[StagedPlace, int]:
        """The rows in the destination's database. Raises CountMismatch when some did not arrive."""
        reading, count = self._counted(going, cut)
        meter = self._meter("stage", count or 0)
        relay = dialect(self.job.source.dialect).relay
        stage_all, look = Carriers(relay, BySpark(self.spark), self.steps).choose(count, SPARK_FROM, meter)
        with self.steps.long_step("stage", meter, look), worded(meter.what):
            place = self.target.create_staging()
            if count == 0:
                return place, 0
            tracked = self.job.snapshot.tracked
            rows = Rows(meter.what, reading, place, private=bool(tracked and tracked.private))
            [done] = stage_all([rows], self.target.staging_login(), self.job.source.readers)
        if count is not None and done.rows != count:
            raise CountMismatch(
                f"{self.job.snapshot.relation}: the source counted {how_many(count, 'row')}, but"
                f" {how_many(done.rows, 'row was', 'rows were')} read;"
                " nothing was written"
            )
        return place.believing(done.attempts, done.rows), done.bytes

    def _written(self, going: Going, session: Session, staged: StagedPlace) -> Written:
        if going.since is None:
            return self._replaced(session, staged)
        with self.steps.long_step("write", self._meter("write", staged.rows)):
            written = self.target.apply(staged, going.target_state, session, self.steps.progress)
        with self.steps.step("remember"):
            self.source.remember(going.source_state, session)
        return written

    def _replaced(self, session: Session, staged: StagedPlace) -> Written:
        """The source hears of the session first: if this is killed in between, the ends still share an older one."""
        if self.job.snapshot.incremental:
            with self.steps.step("expect"):
                self.source.expect(session)
        with self.steps.long_step("write", self._meter("write", staged.rows)):
            return self.target.replace(staged, session, self.steps.progress)

    def _planned(self, going: Going, cut: Cut) -> Written:
        """The effect of a refresh now: by digests when it is a full one, else changed keys in and out of the
        query."""
        meter = self._meter("plan")
        with self.steps.long_step("plan", meter), worded(meter.what):
            if going.since is not None:
                return self._planned_changes(going, cut)
            from spark_jobs.steps.snapshot_plan import by_digests  # noqa: PLC0415 - few refreshes need Spark

            return by_digests(self.spark(), self.source.digests(cut), self.target.digests())

    def _planned_changes(self, going: Going, cut: Cut) -> Written:
        reading, count = self._counted(going, cut)
        if count == 0:
            return Written()
        from spark_jobs.steps.snapshot_plan import by_keys  # noqa: PLC0415 - likewise

        with self.steps.step("start_spark"):
            spark = self.spark()
        return by_keys(spark, reading)

    def _meter(self, work: str, rows: int = 0) -> Meter:
        return Meter(work, str(self.job.snapshot.table), of=rows)

    def _report(self, going: Going, written: Written, size: int) -> SnapshotReport:
        return SnapshotReport(
            transmission=self.job.transmission,
            full=going.since is None,
            plan_only=self.job.plan_only,
            inserted=written.inserted,
            updated=written.updated,
            deleted=written.deleted,
            unchanged=written.unchanged,
            seconds=self.steps.seconds,
            bytes=size,
        )


def work(job: SnapshotJob, spark: Spark, progress: Progress, tell: Tell) -> SnapshotReport:
    """The application's work: one refresh, logged."""
    report = refresh(job, spark, progress, tell)
    log_event(
        logger, "snapshot refreshed", snapshot=job.snapshot.name, rows=report.written, seconds=report.seconds
    )
    return report


def main() -> int:
    """As submitted; its status."""
    return run(SnapshotJob, work)


if __name__ == "__main__":
    sys.exit(main())
