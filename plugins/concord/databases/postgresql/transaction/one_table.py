"""The staged rows of one table: judged, logged, written."""

from __future__ import annotations

from collections.abc import Mapping

from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.plans import any_plan
from concord.databases.postgresql.rows import marked_edits
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.write import (
    conflict_log,
    guard,
    identity_ranges,
    merge,
    merged_row,
    restoration,
    retake,
    too_large,
)
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.writing import Writing
from concord.jobs.link import LinkJob, TableReport
from concord.messages.errors import DecideAgain
from concord.messages.how_many import how_many
from concord.rules.policy import Chains


def judge_table(
    connection: Connection,
    job: LinkJob,
    staged: Staged,
    chains: Chains,
    ordinal: int,
    terms: guard.Terms = guard.Terms(),  # noqa: B008 - frozen
) -> tuple[Judged, TableReport]:
    """The verdicts of one table's staged rows, and the rows per outcome.

    Raises DecideAgain where somebody else's function has to be asked once more, WriteContended where a row that no
    lock held has changed meanwhile.
    """
    verdicts = guard.judge(connection, staged, ordinal, terms)
    found, tally = verdicts.relation, verdicts.tally
    if not terms.locked:
        guard.hold(connection, staged, verdicts, job)
    if too_large.hold_back(connection, job, staged, found, tally, *too_large.before_retake(staged.shape)):
        tally = guard.tally(connection, found)
    if tally.keys() & {"retake", "merged"}:
        with any_plan(connection):
            retake.retake(connection, staged, found, chains)
            tally = guard.tally(connection, found)
            _refuse_to_guess(connection, job, staged, found, tally)
            if tally.get("merged", 0):
                merged_row.stamp(connection, found)
    if too_large.hold_back(connection, job, staged, found, tally, *too_large.LOGGED):
        tally = guard.tally(connection, found)
    judged = Judged(
        staged,
        found,
        sum(tally.values()),
        job.source.name,
        job.target.name,
        merged=tally.get("merged", 0) > 0,
        adopted=tally.get("source_stays", 0),
        since=verdicts.since,
    )
    return judged, report_of(staged, tally)


def _refuse_to_guess(
    connection: Connection, job: LinkJob, staged: Staged, verdicts: str, tally: Mapping[str, int]
) -> None:
    """Raises DecideAgain."""
    if asked := tally.get("again"):
        table = staged.shape.name
        raise DecideAgain(
            f"{job.target.name}: {table}: {how_many(asked, 'row')} met versions that their function was not shown",
            met={table: retake.to_ask(connection, staged.shape, verdicts)},
        )


def report_of(staged: Staged, tally: Mapping[str, int]) -> TableReport:
    """Rows per outcome of what was staged; what does not stand in the tally simply applied."""
    simply = staged.rows - sum(tally.values())
    conflicts = sum(tally.get(verdict, 0) for verdict in ("source_wins", "target_wins", "merged"))
    same_thing = sum(tally.get(verdict, 0) for verdict in guard.SAME_THING)
    return TableReport(
        table=staged.shape.name,
        acquired=staged.rows,
        applied=simply
        + sum(tally.get(verdict, 0) for verdict in guard.WINNING)
        - tally.get("source_stays", 0),
        converged=tally.get("converged", 0) + tally.get("united_converged", 0) + same_thing,
        superseded=tally.get("superseded", 0) + tally.get("united_superseded", 0),
        lost=tally.get("target_wins", 0),
        filtered=tally.get("filtered", 0),
        conflicts=conflicts,
        merged=tally.get("merged", 0),
        restored=tally.get("restore", 0),
        inserted_for_update=tally.get("inserted_for_update", 0),
        held=tally.get("held", 0),
        quarantined=tally.get("quarantined", 0),
        retried=staged.retried,
    )


def log_table(connection: Connection, writing: Writing, judged: Judged, report: TableReport) -> TableReport:
    """The conflicts of one table's staged rows, before anything of it is written. The report counts those that did
    not stand in the log yet."""
    job = writing.job
    writing.progress("conflicts")
    if not judged.exceptional:
        return report
    with any_plan(connection):
        logged = conflict_log.log_conflicts(
            connection, judged, job.synchronization, job.link, job.transmission
        )
        conflict_log.log_merged(connection, judged, job.synchronization, job.link, job.transmission)
        if job.interval is not None:
            restoration.log(connection, judged, job)
    return report.model_copy(update={"conflicts": logged + report.merged})


def write_table(
    connection: Connection, writing: Writing, judged: Judged, report: TableReport, *, values_move: bool
) -> None:
    """Base rows, then shadow rows, as applications do: none of them is ever the one that closes a circle.

    An application that edits a row in between waits for the base row; one that was faster has left its version.
    """
    shape = judged.staged.shape
    writing.progress("base")
    merge.write_base(connection, judged, values_move=values_move)
    identity_ranges.advance(connection, judged, writing.wanted(shape.name), writing.site)
    writing.progress("shadow")
    written = report.applied + judged.adopted
    merge.write_shadow(connection, judged, expected=written, suspicion=writing.suspicion(shape.name))
    marked_edits.remember_written(connection, shape, judged.winners)
    if judged.exceptional:
        merge.announce_losers(connection, judged)
        if shape.shadow.keeps_base:
            with any_plan(connection):
                merge.remember_incoming(connection, judged)
