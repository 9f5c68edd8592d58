"""The one target transaction of a transmission: all of it is visible at once, or nothing (D3, I6)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import count
from typing import Protocol

import psycopg

from concord.databases.dialect import LinkState, Progress
from concord.databases.postgresql import (
    constraints,
    foreign_keys,
    former,
    guard,
    identity_ranges,
    link_state,
    marked_edits,
    merge,
    merged_row,
    rehearsal,
    restoration,
    uniqueness,
    waiting,
    waiting_table,
)
from concord.databases.postgresql.catalogue import read_tables
from concord.databases.postgresql.plans import ANY_PLAN, BY_KEY
from concord.databases.postgresql.session import Connection, in_our_words, run
from concord.databases.postgresql.shape import Shape
from concord.databases.postgresql.stage import Staged
from concord.databases.postgresql.watch import UNWATCHED, Watch, refuse_oscillating, watch_of
from concord.errors import (
    ConcordError,
    ConstraintViolated,
    DecideAgain,
    NotInitialized,
    StructureChanged,
    WriteContended,
)
from concord.link import LinkJob, TableReport
from concord.policy import Chains
from concord.position import Session
from concord.replication_set import ReplicatedTable

#: How long the whole transaction is repeated when applications get in its way.
PATIENCE = 120.0

#: Two rows with one value: a lost race, values that move between rows, or a collision that `uniqueness` mends.
COLLISIONS = (psycopg.errors.UniqueViolation, psycopg.errors.ExclusionViolation)

#: How many of them before one is taken for what it says: the second may be a lost race again (rule 3).
RACES = 3

#: Applications are never the ones to give way: the applier looks for a deadlock at once, and gives up any
#: wait before an application's own deadlock_timeout (1 s by default) could end the application instead.
SETTINGS = (
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL concord.applying = 'on'",
    "SET LOCAL deadlock_timeout = '20ms'",
    "SET LOCAL lock_timeout = '500ms'",
    "SET LOCAL synchronous_commit = on",
)


class Care(IntEnum):
    """How much a try leaves out, learnt from what the one before was refused."""

    NONE = 0
    ROWS = 1  #: what the target refuses row by row
    REFERENCES = 2  #: also what refers to nothing and cannot be mended


@dataclass(frozen=True, slots=True)
class Writing:
    """What the transaction is about, the same in every try."""

    job: LinkJob
    staged: Sequence[Staged]
    state: LinkState
    session: Session | None  #: None for a write that moves no position (rule 1)
    progress: Progress
    released: frozenset[str] = frozenset()  #: tables whose rows may rebound this time

    @property
    def site(self) -> str:
        return self.job.target.name

    def watch(self, table: str) -> Watch:
        """What to look out for; a repair and an initialization are asked for by a person, who sees what is there."""
        if self.session is None or not self.session.id:
            return UNWATCHED
        session = self.session.id if self.job.moves_positions else None
        return watch_of(self.job, table, session, released=table in self.released)

    def wanted(self, name: str) -> ReplicatedTable:
        return next(table for table in self.job.tables if table.name == name)


def write(connect: Callable[[], Connection], writing: Writing) -> dict[str, TableReport]:
    """Write the staged rows and the session in one transaction; the rows per outcome of each table.

    Raises WriteContended, ConstraintViolated, LeaseLost, SiteUnavailable.
    """
    reports: dict[str, TableReport] = {}

    def attempt(connection: Connection, *, violations: int) -> None:
        moving, care = violations > 0, Care.NONE
        while True:
            reports.clear()
            try:
                _attempt(connection, writing, reports, moving=moving, care=care)
            except (psycopg.Error, ConstraintViolated) as error:
                if care is Care.REFERENCES or not _is_about_rows(error, violations, writing):
                    raise
                first = care is Care.NONE and not isinstance(error, ConstraintViolated)
                care = Care.ROWS if first else Care.REFERENCES
            else:
                return

    session = None if writing.session is None else writing.session.id
    commit = Commit(connect, writing.job.link, session, writing.site)
    repeat(commit, attempt)
    return reports


def _is_about_rows(error: Exception, violations: int, writing: Writing) -> bool:
    """Can the write go on without the rows that were refused? A repair names them instead (`compare.md`)."""
    if writing.session is None or not writing.job.max_quarantined:
        return False
    if isinstance(error, COLLISIONS):
        return violations + 1 >= RACES
    return isinstance(error, ConstraintViolated) or (
        isinstance(error, psycopg.Error) and rehearsal.is_refusal(error)
    )


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a transaction is tried, and the session by which its commit is known."""

    connect: Callable[[], Connection]
    link: str
    session: str | None  #: None: it leaves no trace, counts as lost, and its repetition finds it done
    site: str

    def happened(self) -> bool:
        """Did the transaction commit although the answer was lost? The link's state knows (F56)."""
        if self.session is None:
            return False
        with self.connect() as connection:
            try:
                history = link_state.read(connection, self.link, self.site).history
            except NotInitialized:
                return False
        return any(known.id == self.session for known in history)


class Attempt(Protocol):
    """One try of a transaction, told how many unique violations earlier tries met."""

    def __call__(self, connection: Connection, *, violations: int) -> None: ...


def repeat(commit: Commit, attempt: Attempt) -> None:
    """Try the whole transaction again on a deadlock or a lost race (rule 3), for as long as PATIENCE lasts.

    A commit whose outcome is unknown is looked up in the link's state (F56); a backfill leaves nothing there and
    is repeated, which finds its rows written. Raises WriteContended, ConstraintViolated, LeaseLost,
    SiteUnavailable.
    """
    began, violations = time.monotonic(), 0
    for tries in count(1):
        connection = commit.connect()
        try:
            attempt(connection, violations=violations)
        except (psycopg.Error, WriteContended) as error:
            if connection.broken and commit.happened():
                return
            violations += isinstance(error, COLLISIONS)
            _refuse_what_will_not_pass(error, violations, commit.site)
            if time.monotonic() - began > PATIENCE:
                raise _worded(error, commit.site) from error
        else:
            return
        finally:
            connection.close()
        time.sleep(random.uniform(0, min(2.0, 0.05 * 2**tries)))  # noqa: S311 - jitter needs no cryptography


def _worded(error: psycopg.Error | WriteContended, site: str) -> ConcordError:
    return in_our_words(error, site) if isinstance(error, psycopg.Error) else error


def _refuse_what_will_not_pass(error: psycopg.Error | WriteContended, violations: int, site: str) -> None:
    """Raise what no repetition mends: a constraint of the target, a missing right, a dead database."""
    if isinstance(error, COLLISIONS):
        if violations < RACES:
            return
        raise ConstraintViolated(
            f"{site}: {error.diag.constraint_name}: {error.diag.message_detail} Two sites used one value; change"
            " one of the rows, at either site. Nothing was written"
        ) from error
    if isinstance(error, psycopg.errors.IntegrityError | psycopg.errors.DataError):
        said = str(error).strip().splitlines()[0]
        raise ConstraintViolated(f"{site}: {said}; nothing was written") from error
    if not isinstance(_worded(error, site), WriteContended):
        raise _worded(error, site) from error


def _attempt(
    connection: Connection, writing: Writing, reports: dict[str, TableReport], *, moving: bool, care: Care
) -> None:
    """One try; `reports` is filled before the commit, so that it is known even when the answer is lost."""
    with connection.transaction():
        writing.progress("hold_fence")
        run(connection, *SETTINGS)
        link_state.hold_fence(connection, writing.job.synchronization, writing.job.epoch, writing.site)
        if writing.staged:
            reports |= _write_tables(connection, writing, moving=moving, care=care)
        if writing.session is not None and writing.job.moves_positions:
            writing.progress("link_state")
            link_state.remember(connection, writing.job.link, writing.state, writing.session)
        writing.progress("commit")


def _write_tables(
    connection: Connection, writing: Writing, *, moving: bool, care: Care
) -> dict[str, TableReport]:
    """Write what is staged, and what waits; with `care`, without the rows that the target refuses."""
    waits = waiting_table.counted(connection, writing.job.link)
    again = waits if writing.session is not None and writing.job.moves_positions else {}
    staged = [
        waiting.bring(connection, writing.job.link, each) if again.get(each.shape.name) else each
        for each in writing.staged
    ]
    run(connection, *BY_KEY)
    ordered = _parents_first([each for each in staged if each.rows])
    writing.progress("lock")
    marked_edits.lock(connection, [each.shape for each in ordered])
    for each in ordered:
        run(connection, f"ANALYZE {each.sql}")
        guard.lock(connection, each)
    _refuse_altered(connection, ordered, writing.site)
    for each in ordered:
        if each.shape.marks is not None:
            marked_edits.register_staged(connection, each)
    judged, reports = [], {}
    for ordinal, each in enumerate(ordered):
        writing.progress("judge")
        damaged = _damaged(writing, each)
        watch = writing.watch(each.shape.name)
        chains = each.shape.policy.bound(writing.job.priorities, each.shape.forms)
        table, report = judge_table(connection, writing.job, each, chains, ordinal, damaged, watch)
        judged.append(table)
        reports[each.shape.name] = report
    verdicts = {
        each.staged.shape.name: (each.staged.shape, each.verdicts) for each in judged if each.exceptional
    }
    refuse_oscillating(connection, verdicts, writing.site)
    if care or any(each.retried for each in ordered):
        writing.progress("rehearse")
        moving = True
        judged, reports = _without_refused(connection, writing, judged, care)
    for table in judged:
        log_table(connection, writing, table)
    gave_way = _mend_uniqueness(connection, writing, judged, violated=moving)
    left = {table.staged.shape.table.name for table in judged if former.remember(connection, table)}
    for table in judged:
        write_table(connection, writing, table, reports[table.staged.shape.name], moving=moving)
    for shape, lost in gave_way:
        uniqueness.stamp(connection, shape)
        reports[shape.name] = _with_conflicts(reports[shape.name], lost)
    writing.progress("constraints")
    run(connection, *ANY_PLAN)
    for name, lost in foreign_keys.Mending(connection, writing.job, judged, left).run().items():
        reports[name] = _with_conflicts(reports.get(name, TableReport(table=name)), lost)
    constraints.verify(connection, judged, writing.site)
    for table in judged:
        if table.exceptional:
            waiting.remember(connection, table, writing.job)
    waiting.forget(connection, writing.job.link, [each.shape for each in staged if each.shape.name in waits])
    return reports


def _without_refused(
    connection: Connection, writing: Writing, judged: Sequence[merge.Judged], care: Care
) -> tuple[list[merge.Judged], dict[str, TableReport]]:
    """The same tables, with the rows that the target will not take judged as quarantined."""
    suspects = [
        rehearsal.suspects(connection, table, ordinal, every=bool(care))
        for ordinal, table in enumerate(judged)
    ]

    def mend() -> None:
        accepted = [each.accepted for each in suspects]
        _mend_uniqueness(connection, writing, accepted, violated=True)

    most, references = writing.job.max_quarantined, care is not Care.ROWS
    rehearsal.Rehearsal(connection, suspects, most, writing.site, mend, references).run()
    left, reports = [], {}
    for each in suspects:
        rehearsal.quarantine(connection, each)
        tally = guard.tally(connection, each.judged.verdicts)
        left.append(replace(each.judged, exceptional=sum(tally.values())))
        reports[each.shape.name] = _report(each.judged.staged, tally)
    return left, reports


def _mend_uniqueness(
    connection: Connection, writing: Writing, judged: Sequence[merge.Judged], *, violated: bool
) -> list[tuple[Shape, int]]:
    """The tables in which rows gave way to others, and how many did."""
    found = []
    for table in judged:
        shape = table.staged.shape
        former.open_for(connection, shape)
        if lost := uniqueness.mend(connection, table, writing.job, violated=violated):
            found.append((shape, lost))
    return found


def _with_conflicts(report: TableReport, more: int) -> TableReport:
    return report.model_copy(update={"conflicts": report.conflicts + more})


def _refuse_altered(connection: Connection, staged: Sequence[Staged], site: str) -> None:
    """Their locks keep the tables as they are from here on; were they altered before? (F87)"""
    names = [each.shape.table.name for each in staged]
    now = read_tables(connection, names)
    wrong = [
        str(each.shape.table.name)
        for each in staged
        if (found := now.get(each.shape.table.name)) is None or found.structure != each.shape.table.structure
    ]
    if wrong:
        raise StructureChanged(
            f"{site}: {', '.join(wrong)}: the columns were altered while rows were on their way; nothing was written"
        )


def _parents_first(staged: Sequence[Staged]) -> list[Staged]:
    by_name = {each.shape.table.name: each for each in staged}
    return [by_name[name] for name in constraints.parents_first([each.shape.table for each in staged])]


def _damaged(writing: Writing, staged: Staged) -> str:
    """What a backfill asks of two equal versions; nothing else doubts them."""
    if writing.job.interval is None or writing.session is None:
        return "false"
    return restoration.damaged(staged.shape, writing.session.source_origin)


def judge_table(
    connection: Connection,
    job: LinkJob,
    staged: Staged,
    chains: Chains,
    ordinal: int,
    damaged: str = "false",
    watch: Watch = UNWATCHED,
) -> tuple[merge.Judged, TableReport]:
    """The verdicts of one table's staged rows, taken under lock, and the rows per outcome.

    Raises DecideAgain where somebody else's function has to be asked once more.
    """
    verdicts = guard.judge(connection, staged, ordinal, damaged, watch)
    run(connection, *ANY_PLAN)  # staging has no index: the rows to decide are found by hashing it once
    guard.retake(connection, staged, verdicts, chains)
    tally = guard.tally(connection, verdicts)
    if asked := tally.get("again"):
        raise DecideAgain(
            f"{job.target.name}: {staged.shape.name}: {asked} rows were edited while they were decided"
        )
    merged = tally.get("merged", 0)
    if merged:
        merged_row.stamp(connection, verdicts)
    run(connection, *BY_KEY)
    ends = (job.source.name, job.target.name)
    return merge.Judged(staged, verdicts, sum(tally.values()), *ends, merged=merged > 0), _report(
        staged, tally
    )


def _report(staged: Staged, tally: Mapping[str, int]) -> TableReport:
    """Rows per outcome of what was staged; what does not stand in the tally simply applied."""
    simply = staged.rows - sum(tally.values())
    conflicts = sum(tally.get(verdict, 0) for verdict in ("source_wins", "target_wins", "merged"))
    return TableReport(
        table=staged.shape.name,
        acquired=staged.rows,
        applied=simply + sum(tally.get(verdict, 0) for verdict in guard.WINNING),
        converged=tally.get("converged", 0) + tally.get("united_converged", 0),
        superseded=tally.get("superseded", 0) + tally.get("united_superseded", 0),
        lost=tally.get("target_wins", 0),
        filtered=tally.get("filtered", 0),
        conflicts=conflicts,
        merged=tally.get("merged", 0),
        restored=tally.get("restore", 0),
        held=tally.get("held", 0),
        quarantined=tally.get("quarantined", 0),
        retried=staged.retried,
    )


def log_table(connection: Connection, writing: Writing, judged: merge.Judged) -> None:
    """The conflicts of one table's staged rows, before anything of it is written."""
    job = writing.job
    writing.progress("conflicts")
    run(connection, *ANY_PLAN)  # staging has no index: conflict rows are found by hashing it once
    merge.log_conflicts(connection, judged, job.synchronization, job.link, job.transmission)
    merge.log_merged(connection, judged, job.synchronization, job.link, job.transmission)
    if job.interval is not None:
        restoration.log(connection, judged, job)
    run(connection, *BY_KEY)


def write_table(
    connection: Connection, writing: Writing, judged: merge.Judged, report: TableReport, *, moving: bool
) -> None:
    """Base rows, then shadow rows."""
    writing.progress("base")
    merge.write_base(connection, judged, moving=moving)
    identity_ranges.advance(connection, judged, writing.wanted(judged.staged.shape.name), writing.site)
    writing.progress("shadow")
    watch = writing.watch(judged.staged.shape.name)
    merge.write_shadow(connection, judged, expected=report.applied, watch=watch)
    merge.announce_losers(connection, judged)
    run(connection, *ANY_PLAN)
    merge.remember_incoming(connection, judged)
    run(connection, *BY_KEY)
