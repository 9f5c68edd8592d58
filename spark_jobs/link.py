"""One transmission of one link: fence, acquire, manipulate, detect, resolve, write, report (design 6)."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from concord.databases.postgresql.acquire import Snapshot
from concord.databases.postgresql.ends import Source, Target
from concord.databases.postgresql.link_state import LinkState, SiteRow, uninitialized
from concord.databases.postgresql.shape import Shape
from concord.databases.postgresql.stage import Staged
from concord.errors import (
    BelowFloor,
    ClockSkew,
    ConcordError,
    CountMismatch,
    HistoryLost,
    IdentityChanged,
    NotInitialized,
    StructureChanged,
)
from concord.event_log import log_event
from concord.link import LinkJob, TableReport, TransmissionReport
from concord.position import Resume, Session, resume
from concord.replication_set import chosen
from spark_jobs.acquire import acquire
from spark_jobs.detect import MOST_BROADCAST, detect
from spark_jobs.manipulate import manipulate
from spark_jobs.resolve import resolve
from spark_jobs.session import start
from spark_jobs.write import stage

logger = logging.getLogger("concord.link")

#: Called with the name of each step before it is taken.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Opened:
    """Both ends looked at, fenced, and agreed on where to go on."""

    shapes: Mapping[str, Shape]  #: of the source
    target_shapes: Mapping[str, Shape]
    source_site: SiteRow
    target_site: SiteRow
    source_state: LinkState
    target_state: LinkState
    going_on: Resume
    related: Resume


class Stopwatch:
    """Seconds per step, in the order the steps were taken."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0.0) + time.monotonic() - began, 3)


def transmit(
    job: LinkJob, spark: Callable[[], SparkSession], progress: Progress = lambda step: None
) -> TransmissionReport:
    """Run the link once. May be killed at any instant and repeated any number of times (design 1).

    `spark` is called only when there is something to move. Raises a ConcordError; then the target is as
    it was, and no position has moved.
    """
    watch = Stopwatch()
    with watch.step("open"):
        progress("open")
        source = Source(job)
        try:
            target = Target(job)
        except ConcordError:
            source.close()
            raise
    try:
        reports, size = _transmit(job, source, target, spark, progress, watch)
    finally:
        target.close()
        source.close()
    return TransmissionReport(
        transmission=job.transmission,
        synchronization=job.synchronization,
        direction=job.direction,
        source=job.source.name,
        target=job.target.name,
        plan_only=job.plan_only,
        tables=tuple(reports),
        seconds=watch.seconds,
        bytes=size,
    )


def _transmit(
    job: LinkJob,
    source: Source,
    target: Target,
    spark: Callable[[], SparkSession],
    progress: Progress,
    watch: Stopwatch,
) -> tuple[list[TableReport], int]:
    with watch.step("open"):
        opened = _open(job, source, target, progress)
    progress("snapshot")
    with source.snapshot() as snapshot:
        session = _session(job, opened, snapshot)
        if not job.plan_only:
            progress("heartbeat")
            session = replace(session, heartbeat=source.beat())
        moved = _move(job, source, target, opened, snapshot, spark, progress, watch)
    try:
        if job.plan_only:
            return moved.reports(), 0
        _check_complete(moved)
        with watch.step("write"):
            written = target.write(moved.staged, opened.target_state, session, progress)
        progress("source_session")
        source.remember(opened.source_state, session)
    finally:
        with watch.step("clean_up"):
            progress("clean_up")
            target.drop_staging()
    reports = moved.reports(written)
    _check_sums(reports, moved.counted)
    return reports, moved.bytes


def _open(job: LinkJob, source: Source, target: Target, progress: Progress) -> Opened:
    """Look at both ends before anything is written; then fence both (steps 1 and 2)."""
    tables = chosen(job.tables, job.chosen)
    source_site, source_shapes, source_clock = source.inspect(tables)
    target_site, target_shapes, target_clock = target.inspect(tables)
    _check_clocks(job, source_clock - target_clock)
    _check_structures(job, source_shapes, target_shapes)
    if not job.plan_only:
        progress("fence")
        source.fence()
        target.fence()
    at_source, at_target = source.state(job.link), target.state(job.link)
    related_at_source, related_at_target = target.state(job.related_link), source.state(job.related_link)
    _check_heartbeat(job.source.name, source_site, at_target)
    _check_heartbeat(job.target.name, target_site, related_at_target)
    _check_initialized(job, [table.name for table in tables], at_source, at_target)
    return Opened(
        shapes={shape.name: shape for shape in source_shapes},
        target_shapes={shape.name: shape for shape in target_shapes},
        source_site=source_site,
        target_site=target_site,
        source_state=at_source,
        target_state=at_target,
        going_on=_resume(job.link, at_source, at_target, source_site, target_site),
        related=_resume(job.related_link, related_at_source, related_at_target, target_site, source_site),
    )


def _resume(
    link: str, at_source: LinkState, at_target: LinkState, source: SiteRow, target: SiteRow
) -> Resume:
    found = resume(at_source.history, at_target.history, source.origin, target.origin)
    if found is None:
        raise HistoryLost(
            f"{source.name} and {target.name} remember no common session of {link}: one of them was restored or"
            f" replaced. Initialize the synchronization again"
        )
    if at_source.below_floor(found.session):
        raise BelowFloor(
            f"{target.name} last took part in {link} before tombstones were removed at {source.name}: what was deleted"
            " meanwhile would come back. Initialize the synchronization again; nothing was written"
        )
    return found


def _check_clocks(job: LinkJob, apart: float) -> None:
    allowed = min(job.source.max_clock_skew, job.target.max_clock_skew)
    if abs(apart) > allowed:
        raise ClockSkew(
            f"the clocks of {job.source.name} and {job.target.name} are {abs(apart):.0f} s apart, more than"
            f" max_clock_skew ({allowed:.0f} s); synchronize them with NTP. Nothing was written"
        )


def _check_structures(job: LinkJob, source: Sequence[Shape], target: Sequence[Shape]) -> None:
    different = [
        ours.name
        for ours, theirs in zip(source, target, strict=True)
        if ours.table.structure != theirs.table.structure
    ]
    if different:
        raise StructureChanged(
            f"{', '.join(different)}: the columns differ between {job.source.name} and {job.target.name};"
            " alter the tables alike at both sites and run `provision`"
        )


def _check_heartbeat(site: str, row: SiteRow, known: LinkState) -> None:
    """A heartbeat that went back is a database that went back (F65, D4)."""
    newest = max((session.heartbeat for session in known.history), default=0)
    if row.heartbeat < newest:
        raise IdentityChanged(
            f"{site}: the database is older than what it has already sent (heartbeat {row.heartbeat}, known {newest}):"
            " it was restored from a backup. Provision and initialize it again; nothing was written"
        )


def _check_initialized(job: LinkJob, tables: Sequence[str], *states: LinkState) -> None:
    missing = sorted({table for state in states for table in uninitialized(state, tables)})
    if missing:
        raise NotInitialized(
            f"{', '.join(missing)}: no common history is proven between {job.source.name} and {job.target.name};"
            f" run initialize__{job.synchronization}"
        )


def _session(job: LinkJob, opened: Opened, snapshot: Snapshot) -> Session:
    """What both ends will remember of this transmission; positions move only for the tables it carries (rule 1)."""
    every = [table.name for table in job.tables]
    return Session(
        id=job.transmission,
        source_origin=opened.source_site.origin,
        target_origin=opened.target_site.origin,
        heartbeat=0,
        position=opened.going_on.session.position.advanced(snapshot.position, opened.shapes, every),
    )


@dataclass(frozen=True)
class Moved:
    """What reached staging, what was settled on the way, and what the source had counted."""

    counted: Mapping[str, int]
    settled: Mapping[str, Counter[str]]
    staged: tuple[Staged, ...]
    planned: Mapping[str, Counter[str]]
    bytes: int

    def reports(self, written: Mapping[str, TableReport] | None = None) -> list[TableReport]:
        return [self._report(table, written or {}) for table in self.counted]

    def _report(self, table: str, written: Mapping[str, TableReport]) -> TableReport:
        settled = self.settled.get(table, Counter()) + self.planned.get(table, Counter())
        wrote = written.get(table, TableReport(table=table))
        won, lost = settled["source_wins"], settled["target_wins"]
        return TableReport(
            table=table,
            acquired=wrote.acquired + sum(settled.values()),
            applied=wrote.applied + settled["apply"] + won,
            converged=wrote.converged + settled["converged"] + settled["unite"],
            superseded=wrote.superseded + settled["superseded"],
            lost=wrote.lost + lost,
            conflicts=wrote.conflicts + won + lost,
        )


def _move(
    job: LinkJob,
    source: Source,
    target: Target,
    opened: Opened,
    snapshot: Snapshot,
    spark: Callable[[], SparkSession],
    progress: Progress,
    watch: Stopwatch,
) -> Moved:
    """Acquire, manipulate, detect, resolve and stage every table that changed."""
    excluded = job.target.name if opened.going_on.at_newest else None
    related_excluded = job.source.name if opened.related.at_newest else None
    since = {name: opened.going_on.session.position.of(name) for name in opened.shapes}
    related = {name: opened.related.session.position.of(name) for name in opened.shapes}
    with watch.step("acquire"):
        progress("count")
        counted = source.count_arrived(list(opened.shapes.values()), since, excluded)
        changed = [name for name in opened.shapes if counted[name]]
        candidates = target.count_arrived(
            [opened.target_shapes[n] for n in changed], related, related_excluded
        )
    settled, planned, staged, size = {}, {}, [], 0
    for ordinal, name in enumerate(changed):
        log_event(logger, "changes found", table=name, rows=counted[name], candidates=candidates[name])
        shape, target_shape = opened.shapes[name], opened.target_shapes[name]
        with watch.step("spark_start"):
            session = spark()
        reading = source.readers(shape, since[name], excluded, counted[name], snapshot)
        changes = manipulate(acquire(session, reading, f"changes_{ordinal}"), _aliases(target_shape))
        present = None
        if candidates[name]:
            present = acquire(
                session,
                target.candidates(target_shape, related[name], related_excluded),
                f"present_{ordinal}",
            )
        detected = detect(
            changes,
            present,
            target_shape.key_aliases,
            job.priorities,
            broadcast=candidates[name] <= MOST_BROADCAST,
        )
        resolved = resolve(detected, target_shape.resolvers, job.priorities)
        with watch.step("stage"):
            if job.plan_only:
                planned[name] = _planned(resolved)
                continue
            progress("stage")
            place = target.create_staging(target_shape, ordinal)
            done = stage(resolved, _aliases(target_shape), target.staging_login(), place.relation)
        settled[name], size = done.settled, size + done.bytes
        if done.rows:
            staged.append(replace(place, attempts=done.attempts, rows=done.rows))
        progress("staged")
    return Moved(counted, settled, tuple(staged), planned, size)


def _planned(resolved: DataFrame) -> Counter[str]:
    return Counter({row["verdict"]: row["count"] for row in resolved.groupBy("verdict").count().collect()})


def _aliases(shape: Shape) -> list[str]:
    return [shape.alias(column) for column in shape.columns]


def _check_complete(moved: Moved) -> None:
    """Before anything is written: Spark read exactly the rows that the source counted in the same snapshot."""
    staged = {each.shape.name: each.rows for each in moved.staged}
    for table, counted in moved.counted.items():
        read = staged.get(table, 0) + sum(moved.settled.get(table, Counter()).values())
        if read != counted:
            raise CountMismatch(
                f"{table}: {counted} rows changed at the source, but {read} were read; nothing was written"
            )


def _check_sums(reports: Sequence[TableReport], counted: Mapping[str, int]) -> None:
    """Rule 11: what the source counted, what Spark read and what the target did with it are one number."""
    for report in reports:
        if not report.adds_up or report.acquired != counted[report.table]:
            raise CountMismatch(
                f"{report.table}: {counted[report.table]} rows were counted at the source, {report.acquired} acquired:"
                f" {report.applied} applied, {report.converged} converged, {report.superseded} superseded,"
                f" {report.lost} lost"
            )


def read_job(path: Path) -> LinkJob:
    """The job file: ours alone (mode 0600), read once and removed at once, since it holds passwords (S5)."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConcordError(f"the job file is readable by others (mode {mode:o}); it must be 0600")
    job = LinkJob.model_validate_json(path.read_text())
    path.unlink()
    return job


def main() -> int:
    """Entry point for spark-submit: CONCORD_JOB in, CONCORD_REPORT out; 0, or 1 transient, or 2 permanent."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stdout)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    job = read_job(Path(os.environ["CONCORD_JOB"]))
    report_path = Path(os.environ["CONCORD_REPORT"])
    try:
        report = transmit(
            job, lambda: start(f"concord {job.link}"), lambda step: log_event(logger, "step", name=step)
        )
    except ConcordError as error:
        log_event(logger, "transmission failed", code=error.code, message=error.message)
        report_path.write_text(json.dumps({"error_code": error.code, "error_message": error.message}))
        return 1 if error.transient else 2
    report_path.write_text(report.model_dump_json())
    log_event(
        logger, "transmission completed", link=job.link, rows=report.total("acquired"), seconds=report.seconds
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
