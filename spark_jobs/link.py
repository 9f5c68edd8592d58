"""One transmission of one link: open, snapshot, move, write, remember, report (design 6)."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from concord.databases.dialect import Progress, Snapshot, SourceEnd, TargetEnd
from concord.databases.registry import dialect
from concord.errors import ConcordError
from concord.event_log import log_event
from concord.link import LinkJob, TableReport, TransmissionReport
from concord.position import Session
from spark_jobs.moving import Move, Moved, Watch
from spark_jobs.opening import Opened, open_link
from spark_jobs.session import start

logger = logging.getLogger("concord.link")


def _silent(step: str) -> None:
    """Nobody wants to hear of the steps."""


def transmit(
    job: LinkJob, spark: Callable[[], SparkSession], progress: Progress = _silent
) -> TransmissionReport:
    """Run the link once. May be killed at any instant and repeated any number of times (design 1).

    `spark` is called only when there is something to move; `progress` hears the name of each step before it
    is taken. Raises a ConcordError; then the target is as it was, and no position has moved.
    """
    watch = Watch(progress)
    with watch.step("open"):
        source = dialect(job.source.dialect).source(job)
    try:
        target = dialect(job.target.dialect).target(job)
        try:
            tables, size = _transmit(job, source, target, spark, watch)
        finally:
            target.close()
    finally:
        source.close()
    return TransmissionReport(
        transmission=job.transmission,
        synchronization=job.synchronization,
        direction=job.direction,
        source=job.source.name,
        target=job.target.name,
        plan_only=job.plan_only,
        tables=tuple(tables),
        seconds=watch.seconds,
        bytes=size,
    )


def _transmit(
    job: LinkJob, source: SourceEnd, target: TargetEnd, spark: Callable[[], SparkSession], watch: Watch
) -> tuple[list[TableReport], int]:
    with watch.step("inspect"):
        opened = open_link(job, source, target, watch.progress)
    try:
        watch.progress("snapshot")
        with source.snapshot() as snapshot:
            session = _session(job, opened, snapshot)
            if not job.plan_only:
                watch.progress("heartbeat")
                session = replace(session, heartbeat=source.beat())
            moved = Move(job, source, target, opened, snapshot, spark, watch).run()
        moved.check_complete()
        if job.plan_only:
            return moved.reports({}), 0
        return _write(source, target, opened, session, moved, watch), moved.bytes
    finally:
        with watch.step("clean_up"):
            target.drop_staging()


def _session(job: LinkJob, opened: Opened, snapshot: Snapshot) -> Session:
    """What both ends will remember; positions move only for the tables that the run carries (rule 1).

    A table that has left the configuration keeps its place: it may come back.
    """
    position = opened.going_on.session.position
    every = {
        *(table.name for table in job.tables),
        *opened.source_state.initialized,
        *opened.target_state.initialized,
        *position.differing,
    }
    return Session(
        id=job.transmission,
        source_origin=opened.source_site.origin,
        target_origin=opened.target_site.origin,
        heartbeat=0,
        position=position.advanced(snapshot.position, opened.shapes, every),
    )


def _write(
    source: SourceEnd, target: TargetEnd, opened: Opened, session: Session, moved: Moved, watch: Watch
) -> list[TableReport]:
    """The target's one transaction, then the source's memory of it."""
    with watch.step("write"):
        written = target.write(moved.staged, opened.target_state, session, watch.progress)
    with watch.step("remember"):
        source.remember(opened.source_state, session)
    return moved.reports(written)


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
