"""One transmission of one link: open, snapshot, move, write, remember, report (design 6)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import cast

from concord.databases.contract.dialect import Progress, Snapshot, SourceEnd, TargetEnd
from concord.databases.registry import dialect
from concord.jobs.link import LinkJob, TableReport, TransmissionReport
from concord.messages.errors import (
    BrakeHeld,
    ConcordError,
    DecideAgain,
    RowsOscillate,
    SparkUnavailable,
    TablesStopped,
)
from concord.messages.event_log import log_event
from concord.messages.pace import Meter, Tell, of_tables, silent
from concord.rules.brake import Hold
from concord.transmission.brake import brake, leave_out_oscillating
from concord.transmission.opening import Opened, open_link
from concord.transmission.outcome import Moved
from concord.transmission.steps import Steps
from concord.versions.position import Session
from spark_jobs.application import Spark, run
from spark_jobs.moving import Earlier, Move

logger = logging.getLogger("concord.link")

#: How often a run asks somebody else's function about rows that are edited all the while.
ROUNDS = 3


def _silent(step: str) -> None:
    """Nobody wants to hear of the steps."""


def transmit(
    job: LinkJob, spark: Spark, progress: Progress = _silent, tell: Tell = silent
) -> TransmissionReport:
    """Run the link once. May be killed at any instant and repeated any number of times (design 1).

    `spark` is called only when there is something to move. `progress` hears the name of each step before it is
    taken, and `tell` of how far a long one is. Raises a ConcordError; then the target is as it was, and no position
    has moved.
    """
    steps = Steps(progress, tell)
    with ExitStack() as ends:
        with steps.step("open"):
            source, target = _open(job, ends)
        tables, size, held = _transmit(job, source, target, spark, steps)
    return TransmissionReport.of(
        job,
        tables=tuple(tables),
        seconds=steps.seconds,
        bytes=size,
        holds=tuple(held),
        **_what_was_left_out(tables),
    )


def _open(job: LinkJob, ends: ExitStack) -> tuple[SourceEnd, TargetEnd]:
    """Both at the same time, since a login takes a while. Raises the source's error first, when both have
    answered."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        logging_in = beside.submit(dialect(job.target.dialect).target, job)
        try:
            source = dialect(job.source.dialect).source(job)
            ends.callback(source.close)
        finally:
            with suppress(ConcordError):
                ends.callback(logging_in.result().close)
    return source, logging_in.result()


def _what_was_left_out(tables: Sequence[TableReport]) -> dict[str, str]:
    """The error of a run that carried some tables and not others; empty when it carried all."""
    reasons = [table.stopped for table in tables if table.stopped is not None]
    if not reasons:
        return {}
    carried = f"; {len(tables) - len(reasons)} other tables were carried"
    return {"error_code": TablesStopped.code, "error_message": "; ".join(reasons) + carried}


def _transmit(
    job: LinkJob, source: SourceEnd, target: TargetEnd, spark: Spark, steps: Steps
) -> tuple[list[TableReport], int, list[Hold]]:
    with steps.step("inspect"):
        opened = open_link(job, source, target, steps.progress)
    position = opened.going_on.session.position
    log_event(logger, "goes on from its position", link=job.link, position=position.common)
    try:
        if not job.plan_only:
            with steps.step("register"):
                _register(source, target, opened)
        return _carry(job, source, target, opened, spark, steps)
    finally:
        with steps.step("clean_up"):
            target.drop_staging()


def _carry(
    job: LinkJob,
    source: SourceEnd,
    target: TargetEnd,
    opened: Opened,
    spark: Spark,
    steps: Steps,
) -> tuple[list[TableReport], int, list[Hold]]:
    """Move and write; anew where a function was not shown what its rows met. In the last round it is not asked
    again. The rest of its chain decides the conflicts that it has not decided by then, so that no row stops the
    link."""
    met: dict[str, list[str]] = {}
    for rounds_left in reversed(range(ROUNDS)):
        move = partial(_move, job, source, target, opened, spark, steps)
        snapshot, heartbeat, moved = _weighed(job, target, opened, steps, Earlier(met), move)
        if job.plan_only:
            return moved.reports({}), 0, []

        def session(
            snapshot: Snapshot = snapshot, heartbeat: int = heartbeat, moved: Moved = moved
        ) -> Session:
            return replace(_session(job, opened, snapshot, moved), heartbeat=heartbeat)

        write = partial(target.write, asks=rounds_left > 0)
        try:
            return _write(job, source, write, opened, session, moved, steps), moved.bytes, moved.holds
        except DecideAgain as error:
            log_event(logger, "decided again", why=error.message)
            met = _united(met, error)
            target.drop_staging()
    raise AssertionError("the last round asks nobody")


def _weighed(
    job: LinkJob,
    target: TargetEnd,
    opened: Opened,
    steps: Steps,
    earlier: Earlier,
    move: Callable[[Earlier], tuple[Snapshot, int, Moved]],
) -> tuple[Snapshot, int, Moved]:
    """The moved rows, let pass by the brakes. A delete that loses takes no row away: before the brakes hold a table
    whose changes the target has yet to judge, Spark judges them. Raises BrakeHeld."""
    found = move(earlier)
    try:
        brake(job, target, opened, found[-1], steps)
    except BrakeHeld as held:
        unjudged = found[-1].unjudged & _held(held)
        if not unjudged:
            raise
        log_event(logger, "judged before it is weighed", tables=sorted(unjudged))
        target.drop_staging()
        try:
            found = move(earlier._replace(judged_first=unjudged))
        except SparkUnavailable:  # a person must hear of the hold
            raise held from None
        brake(job, target, opened, found[-1], steps)
    return found


def _held(error: BrakeHeld) -> set[str]:
    """The tables that wait for a person."""
    return {Hold.model_validate(each).table for each in cast("list[object]", error.holds)}


def _united(met: Mapping[str, Sequence[str]], error: DecideAgain) -> dict[str, list[str]]:
    """The keys by table, with those of one more round."""
    more: Mapping[str, Sequence[str]] = error.facts["met"]  # type: ignore[assignment]
    return {name: sorted({*met.get(name, ()), *more.get(name, ())}) for name in {*met, *more}}


def _move(
    job: LinkJob,
    source: SourceEnd,
    target: TargetEnd,
    opened: Opened,
    spark: Spark,
    steps: Steps,
    earlier: Earlier,
) -> tuple[Snapshot, int, Moved]:
    """One snapshot of the source, moved into staging; and the heartbeat that followed it, 0 for none."""
    steps.progress("snapshot")
    with source.snapshot() as snapshot:
        heartbeat = 0
        if job.moves_positions:
            steps.progress("heartbeat")
            heartbeat = source.beat(snapshot.position)
        moved = Move(job, source, target, opened, snapshot, spark, steps, earlier).run()
    moved.check_complete()
    return snapshot, heartbeat, moved


def _register(source: SourceEnd, target: TargetEnd, opened: Opened) -> None:
    """Before the snapshot, at both ends: the source's edits are what travels, the target's what may conflict."""
    position = opened.going_on.session.position
    since = {name: position.of(name) for name in opened.shapes}
    for end, shapes, site, waiting in (
        (source, opened.shapes, opened.source_site, since),
        (target, opened.target_shapes, opened.target_site, {}),
    ):
        for table, found in end.register(list(shapes.values()), waiting).items():
            log_event(logger, "edits registered", site=site.name, table=table, rows=found)


def _session(job: LinkJob, opened: Opened, snapshot: Snapshot, moved: Moved) -> Session:
    """The session that both ends will remember; positions move only for the tables that the run carries (rule 1).

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
        position=position.advanced(snapshot.position, moved.carried, every),
    )


def _write(
    job: LinkJob,
    source: SourceEnd,
    write: Callable[..., dict[str, TableReport]],
    opened: Opened,
    session: Callable[[], Session],
    moved: Moved,
    steps: Steps,
) -> list[TableReport]:
    """The target's one transaction, then the source's memory of it; of a backfill neither end keeps any.

    Tables that oscillate are left out, and the others go on without them.
    """
    rows = sum(place.rows for place in moved.placed)
    # One transaction, of which nobody sees a part: neither do we.
    names = [place.shape.name for place in moved.placed]
    with steps.long_step("write", Meter("write", of_tables(names), of=rows)):
        try:
            written = write(moved.placed, opened.target_state, session(), steps.progress)
        except RowsOscillate as error:
            passing = leave_out_oscillating(error, source, moved, opened)
            written = write(moved.placed, opened.target_state, session(), steps.progress, passing)
    if job.moves_positions:
        with steps.step("remember"):
            source.remember(opened.source_state, session())
    for table in written.values():
        if table.inserted_for_update:
            log_event(
                logger,
                "updates found no row at the target, and inserted it",
                site=job.target.name,
                table=table.table,
                rows=table.inserted_for_update,
                keys=list(table.keys_inserted),
            )
    return moved.reports(written)


def work(job: LinkJob, spark: Spark, progress: Progress, tell: Tell) -> TransmissionReport:
    """The application's work: one transmission, logged."""
    report = transmit(job, spark, progress, tell)
    log_event(
        logger, "transmission completed", link=job.link, rows=report.total("acquired"), seconds=report.seconds
    )
    return report


def main() -> int:
    """As submitted; its status."""
    return run(LinkJob, work)


if __name__ == "__main__":
    sys.exit(main())
