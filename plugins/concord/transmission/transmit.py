"""One transmission of one link, top to bottom: open, register, cut, count, carry, brake, write, remember, report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from concord.databases.contract.dialect import Dialect
from concord.databases.contract.ends import Progress
from concord.jobs.link import LinkJob, TableReport, TransmissionReport
from concord.messages.errors import BrakeHeld, DecideAgain, LinkFailed, SparkUnavailable, TablesStopped
from concord.messages.event_log import log_event, logger_named
from concord.messages.pace import Tell, silent
from concord.rules.brake import Hold
from concord.transmission.brake import brake
from concord.transmission.carry import Carry, Earlier
from concord.transmission.count import count
from concord.transmission.link import Link, SparkSteps, opened
from concord.transmission.outcome import LinkOutcome
from concord.transmission.register import register
from concord.transmission.steps import Steps, unheard
from concord.transmission.write import log_inserted_for_update, remember, write

logger = logger_named("concord.link")

#: How often a run asks somebody else's function about rows that are edited all the while.
ROUNDS = 3


def transmit(
    job: LinkJob,
    dialects: Callable[[str], Dialect],
    spark: SparkSteps,
    progress: Progress = unheard,
    tell: Tell = silent,
) -> TransmissionReport:
    """Run the link once. May be killed at any instant and repeated any number of times.

    `spark` is started only when there is something for it. `progress` hears the name of each step before it is taken;
    `tell` hears how far a long one is. Raises a ConcordError; then the target is as it was, and no position has moved.
    """
    steps = Steps(progress, tell)
    with opened(job, dialects, spark, steps) as link:
        register(link)
        outcome, tables = _decided(link)
    return _report(link, outcome, tables)


def _decided(link: Link) -> tuple[LinkOutcome, list[TableReport]]:
    """Carry and write; anew where a function was not shown what its rows met.

    The last round does not ask it again. The rest of the chain decides what is left, so that no row stops the link.
    """
    met: dict[str, list[str]] = {}
    failed: Mapping[str, str] = {}
    for rounds_left in reversed(range(ROUNDS)):
        outcome, failed = _without_failed(link, Earlier(met, failed=failed))
        if link.job.plan_only:
            return outcome, outcome.reports({})
        try:
            written = write(link, outcome, asks=rounds_left > 0)
        except DecideAgain as error:
            log_event(logger, "decided again", why=error.message)
            met = _united(met, error)
            link.target.drop_staging()
            continue
        remember(link, outcome)
        log_inserted_for_update(link, written.values())
        return outcome, outcome.reports(written)
    raise AssertionError("the last round asks nobody")


def _without_failed(link: Link, earlier: Earlier) -> tuple[LinkOutcome, Mapping[str, str]]:
    """Carry and weigh; again without a table whose rows could not be moved. Those tables, with the reasons.

    Raises LinkFailed where no other table is left.
    """
    while True:
        try:
            return _weighed(link, earlier), earlier.failed
        except LinkFailed as error:
            table = str(error.facts.get("table"))
            if not link.opened.shapes.keys() - earlier.failed.keys() - {table}:
                raise
            if table not in link.opened.shapes or table in earlier.failed:
                raise
            log_event(logger, "goes on without a table", table=table, why=error.message)
            earlier = earlier._replace(failed={**earlier.failed, table: error.message})
            link.target.drop_staging()


def _weighed(link: Link, earlier: Earlier) -> LinkOutcome:
    """Carry, and let the brakes look at it. A delete that loses takes no row away: before the brakes hold a table
    whose changes the target has yet to judge, Spark judges them. Raises BrakeHeld."""
    outcome = _carried(link, earlier)
    try:
        brake(link, outcome)
    except BrakeHeld as held:
        unjudged = outcome.unjudged & _held(held)
        if not unjudged:
            raise
        log_event(logger, "judged before it is weighed", tables=sorted(unjudged))
        link.target.drop_staging()
        try:
            outcome = _carried(link, earlier._replace(judged_first=unjudged))
        except SparkUnavailable:  # a person must hear of the hold
            raise held from None
        brake(link, outcome)
    return outcome


def _carried(link: Link, earlier: Earlier) -> LinkOutcome:
    """Carry into staging what changed in one cut of the source."""
    link.steps.progress("cut")
    with link.source.cut() as cut:
        heartbeat = 0
        if link.job.moves_positions:
            link.steps.progress("heartbeat")
            heartbeat = link.source.beat(cut.position)
        counted = count(link)
        outcome = LinkOutcome.of(link, cut.position, heartbeat, counted)
        Carry(link, cut, counted, earlier, outcome).run()
    outcome.check_complete()
    return outcome


def _held(error: BrakeHeld) -> set[str]:
    """The tables that wait for a person."""
    return {Hold.model_validate(each).table for each in cast("list[object]", error.holds)}


def _united(met: Mapping[str, Sequence[str]], error: DecideAgain) -> dict[str, list[str]]:
    """The keys by table, with those of one more round."""
    more: Mapping[str, Sequence[str]] = error.facts["met"]  # type: ignore[assignment]
    return {name: sorted({*met.get(name, ()), *more.get(name, ())}) for name in {*met, *more}}


def _report(link: Link, outcome: LinkOutcome, tables: Sequence[TableReport]) -> TransmissionReport:
    return TransmissionReport.of(
        link.job,
        tables=tuple(tables),
        seconds=link.steps.seconds,
        bytes=outcome.bytes,
        holds=tuple(outcome.holds),
        **_what_was_left_out(tables),
    )


def _what_was_left_out(tables: Sequence[TableReport]) -> dict[str, str]:
    """The error of a run that carried some tables and not others; empty when it carried all."""
    reasons = [table.stopped for table in tables if table.stopped is not None]
    if not reasons:
        return {}
    carried = f"; {len(tables) - len(reasons)} other tables were carried"
    return {"error_code": TablesStopped.code, "error_message": "; ".join(reasons) + carried}
