"""The staged rows of all tables: judged under lock, logged, written, parents first, and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from concord.databases.postgresql.constraints import (
    clearing,
    foreign_keys,
    former,
    uniqueness,
    verification,
)
from concord.databases.postgresql.constraints.repaired_rows import RepairedRows
from concord.databases.postgresql.facts.catalogue import Table
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.plans import ANY_PLAN
from concord.databases.postgresql.facts.table_errors import of_table
from concord.databases.postgresql.ledger import reinitialization, unreadable_rows, waiting
from concord.databases.postgresql.rows import marked_edits
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.transaction import held_tables, hooked_tables, one_table, rehearsal
from concord.databases.postgresql.write import (
    guard,
    restoration,
    row_locks,
    too_large,
)
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.suspicious import refuse_oscillating
from concord.databases.postgresql.write.writing import Care, Writing
from concord.jobs.link import TableReport
from concord.messages.errors import ConstraintViolated


def write_tables(
    connection: Connection,
    writing: Writing,
    waits: Mapping[str, int],
    repaired: RepairedRows,
    *,
    values_move: bool,
    care: Care,
    locked: bool,
) -> dict[str, TableReport]:
    """Write what is staged, and what waits; with `care`, without the rows that the target refuses.

    `waits`: the tables of which rows wait, as `waiting_table.counted` tells. `repaired`: what earlier tries found.

    `locked`: every row is locked before it is judged. Else only those are that do not simply apply. The write of a
    version refuses one that is another by then. That saves a pass over every row, in vain where applications edit
    the same rows at the same time. Raises WriteContended then; the next try locks.
    """
    staged = _staged(connection, writing, waits)
    again, careful = locked, care is not Care.NONE or any(each.retried for each in staged)
    locked = locked or careful or hooked_tables.any_of(writing, staged)
    ordered = _lock(connection, writing, staged, repaired, locked=locked, again=again)
    judged, reports = _judge(connection, writing, ordered, locked=locked)
    judged, asked = hooked_tables.ask(connection, writing, judged, reports)
    if careful:
        writing.progress("rehearse")
        values_move = True
        judged, reports = _without_refused(connection, writing, judged, care)
    _log(connection, writing, judged, reports)
    gave_way = _mend_uniqueness(connection, writing, judged, violated=values_move)
    left = {table.staged.shape.table.name for table in judged if former.remember(connection, table)}
    _write(connection, writing, judged, reports, gave_way, values_move=values_move)
    mending = foreign_keys.Mending(connection, writing.job, judged, left, repaired)
    _mend_references(connection, writing, mending, judged, reports, waits=bool(waits))
    hooked_tables.add(connection, asked)
    for table in judged:
        if table.exceptional:
            waiting.remember(connection, table, writing.job)
    _let_go(connection, writing, [each for each in staged if each.shape.name in waits])
    return reports


def _log(
    connection: Connection, writing: Writing, judged: Sequence[Judged], reports: dict[str, TableReport]
) -> None:
    """The conflicts of every table, counted in its report."""
    for table in judged:
        name = table.staged.shape.name
        with _of(table.staged, writing):
            reports[name] = _with_keys(connection, table, reports[name])
            reports[name] = one_table.log_table(connection, writing, table, reports[name])
            reports[name] = reinitialization.counted(connection, table, reports[name])


def _write(
    connection: Connection,
    writing: Writing,
    judged: Sequence[Judged],
    reports: dict[str, TableReport],
    gave_way: Sequence[uniqueness.Lost],
    *,
    values_move: bool,
) -> None:
    """The rows of every table, then new versions for those that gave their unique values to others."""
    for table in judged:
        report = reports[table.staged.shape.name]
        with _of(table.staged, writing):
            one_table.write_table(connection, writing, table, report, values_move=values_move)
    for each in gave_way:
        uniqueness.stamp(connection, each.shape)
        reports[each.shape.name] = _with_conflicts(reports[each.shape.name], each.logged)


def _mend_references(
    connection: Connection,
    writing: Writing,
    mending: foreign_keys.Mending,
    judged: Sequence[Judged],
    reports: dict[str, TableReport],
    *,
    waits: bool,
) -> None:
    """Rows whose parents are gone give way or get them back; then every constraint is looked at.

    `waits`: rows wait here for the link.
    """
    writing.progress("constraints")
    if waits or any(table.exceptional or _is_checked(table.staged.shape.table) for table in judged):
        run(connection, *ANY_PLAN)
    for name, lost in mending.run().items():
        reports[name] = _with_conflicts(reports.get(name, TableReport(table=name)), lost)
    verification.verify(connection, judged, writing.site)


def _let_go(connection: Connection, writing: Writing, awaited: Sequence[Staged]) -> None:
    """The rows that waited, and need not any more."""
    for each in awaited:
        if writing.session is not None and each.rows:
            waiting.withdraw(connection, writing.job, each, writing.session.source_origin)
    waiting.forget(connection, writing.job.link, [each.shape for each in awaited])


def _staged(connection: Connection, writing: Writing, waits: Mapping[str, int]) -> list[Staged]:
    """The rows that the link brings, and those that waited to be tried again."""
    for each in writing.staged:
        if each.shape.name in waits:
            unreadable_rows.set_aside(connection, each.shape)
    if writing.session is None or not writing.job.moves_positions:
        return list(writing.staged)
    link, skew = writing.job.link, writing.job.target.max_clock_skew
    return [
        waiting.bring(connection, link, each, skew) if waits.get(each.shape.name) else each
        for each in writing.staged
    ]


def _is_checked(table: Table) -> bool:
    """Has it anything that only a statement of ours can see to be true?"""
    return bool(table.foreign_keys or table.referring or table.deferrable_unique)


def _lock(
    connection: Connection,
    writing: Writing,
    staged: Sequence[Staged],
    repaired: RepairedRows,
    *,
    locked: bool,
    again: bool,
) -> list[Staged]:
    """The staged tables, parents first, each found as it was when the rows were read. `again`: a try before this one
    was in vain."""
    ordered = _parents_first([each for each in staged if each.rows])
    writing.progress("lock")
    if not ordered:
        return []
    marked_edits.lock(connection, [each.shape for each in ordered])
    held_tables.hold(connection, ordered, writing.site)
    first = [each for each in ordered if locked or each.shape.registers]
    # From here on staged text becomes values.
    held = row_locks.lock(connection, first, writing.job, again=again, lock_others=repaired.lock)
    for each in ordered:
        if each.shape.marks is not None:
            marked_edits.register_staged(connection, each, held[each.shape.name])
    return ordered


def _judge(
    connection: Connection, writing: Writing, ordered: Sequence[Staged], *, locked: bool
) -> tuple[list[Judged], dict[str, TableReport]]:
    """The verdicts of every table. Raises DecideAgain, RowsOscillate.

    A function that cannot be asked any more leaves its conflicts to the rest of its chain: no row stops a link.
    """
    judged, reports = [], {}
    for ordinal, each in enumerate(ordered):
        writing.progress("judge")
        bound = each.shape.policy.bound(writing.job.priorities, each.shape.forms, writing.job.ends)
        chains = bound if writing.asks else bound.unasked
        held = locked or each.shape.registers
        suspicion, converts = writing.suspicion(each.shape.name), writing.session is not None
        terms = guard.Terms(
            _damaged(writing, each), suspicion, held, converts, _forgotten(writing, each.shape)
        )
        with _of(each, writing):
            table, report = one_table.judge_table(connection, writing.job, each, chains, ordinal, terms)
        if report.quarantined and writing.session is None:
            raise ConstraintViolated(f"{too_large.reason(connection, table)}; nothing was written")
        judged.append(table)
        reports[each.shape.name] = report
    exceptional = [each for each in judged if each.exceptional]
    verdicts = {each.staged.shape.name: (each.staged.shape, each.verdicts) for each in exceptional}
    refuse_oscillating(connection, verdicts, writing.site)
    return judged, reports


def _without_refused(
    connection: Connection, writing: Writing, judged: Sequence[Judged], care: Care
) -> tuple[list[Judged], dict[str, TableReport]]:
    """The same tables, with the rows that the target will not take judged as quarantined."""
    suspects = [
        rehearsal.suspects(connection, table, ordinal, every=bool(care))
        for ordinal, table in enumerate(judged)
    ]

    def mend() -> None:
        accepted = [each.accepted for each in suspects]
        _mend_uniqueness(connection, writing, accepted, violated=True)

    most, changeable = writing.job.max_quarantined, clearing.changeable(writing.job)
    rehearsal.Rehearsal(connection, suspects, most, writing.site, mend, care, changeable).run()
    left, reports = [], {}
    for each in suspects:
        tally = guard.tally(connection, each.judged.verdicts)
        adopted = tally.get("source_stays", 0)
        left.append(replace(each.judged, exceptional=sum(tally.values()), adopted=adopted))
        reports[each.shape.name] = one_table.report_of(each.judged.staged, tally)
    return left, reports


def _mend_uniqueness(
    connection: Connection, writing: Writing, judged: Sequence[Judged], *, violated: bool
) -> list[uniqueness.Lost]:
    """The tables in which rows gave way to others."""
    found = []
    for table in judged:
        shape = table.staged.shape
        former.open_for(connection, shape)
        with _of(table.staged, writing):
            lost = uniqueness.mend(connection, table, writing.job, violated=violated)
        if lost:
            found.append(lost)
    return found


def _of(staged: Staged, writing: Writing) -> AbstractContextManager[None]:
    return of_table(staged.shape.name, writing.site, private=bool(staged.shape.private))


def _with_keys(connection: Connection, table: Judged, report: TableReport) -> TableReport:
    if not report.inserted_for_update:
        return report
    keys = guard.converted(connection, table.staged.shape, table.verdicts)
    return report.model_copy(update={"keys_inserted": keys})


def _with_conflicts(report: TableReport, more: int) -> TableReport:
    return report.model_copy(update={"conflicts": report.conflicts + more})


def _parents_first(staged: Sequence[Staged]) -> list[Staged]:
    by_name = {each.shape.table.name: each for each in staged}
    return [by_name[name] for name in verification.parents_first([each.shape.table for each in staged])]


def _damaged(writing: Writing, staged: Staged) -> str:
    """A backfill's question about two equal versions; nothing else doubts them."""
    if writing.job.interval is None or writing.session is None:
        return "false"
    return restoration.damaged(staged.shape, writing.session.source_origin)


def _forgotten(writing: Writing, shape: Shape) -> str:
    """A backfill's question to a version that nothing is known of; a link tells each version once."""
    return "false" if writing.job.interval is None else restoration.forgotten(shape)
