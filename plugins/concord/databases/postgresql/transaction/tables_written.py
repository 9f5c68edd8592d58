"""The staged rows of all tables: judged under lock, logged, written, parents first, and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from concord.databases.postgresql.constraints import foreign_keys, former, uniqueness, verification
from concord.databases.postgresql.facts.catalogue import Storage, Table, read_storage
from concord.databases.postgresql.facts.plans import ANY_PLAN, BY_KEY, any_plan
from concord.databases.postgresql.facts.session import Connection, run
from concord.databases.postgresql.ledger import reinitialization, waiting
from concord.databases.postgresql.rows import marked_edits
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.transaction import rehearsal
from concord.databases.postgresql.write import guard, identity_ranges, merge, merged_row, restoration
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.watch import refuse_oscillating
from concord.databases.postgresql.write.writing import Care, Writing
from concord.jobs.link import LinkJob, TableReport
from concord.messages.errors import DecideAgain, StructureChanged
from concord.messages.how_many import how_many
from concord.rules.policy import Chains
from concord.tables.replication_set import TableName


def write_tables(
    connection: Connection,
    writing: Writing,
    waits: Mapping[str, int],
    *,
    moving: bool,
    care: Care,
    locked: bool,
) -> dict[str, TableReport]:
    """Write what is staged, and what waits; with `care`, without the rows that the target refuses.

    `waits`: the tables of which rows wait, as `waiting_table.counted` tells.

    `locked`: every row is locked before it is judged. Else only those are that do not simply apply. The write of a
    version refuses one that is another by then. That saves a pass over every row, in vain where applications edit
    the same rows at the same time. Raises WriteContended then; the next try locks.
    """
    again = waits if writing.session is not None and writing.job.moves_positions else {}
    staged = [
        _with_waiting(connection, writing, each) if again.get(each.shape.name) else each
        for each in writing.staged
    ]
    careful = care is not Care.NONE or any(each.retried for each in staged)
    locked = locked or careful
    ordered = _lock(connection, writing, staged, locked=locked)
    judged, reports = _judge(connection, writing, ordered, locked=locked)
    if careful:
        writing.progress("rehearse")
        moving = True
        judged, reports = _without_refused(connection, writing, judged, care)
    for table in judged:
        name = table.staged.shape.name
        reports[name] = _with_keys(connection, table, reports[name])
        reports[name] = log_table(connection, writing, table, reports[name])
        reports[name] = reinitialization.counted(connection, table, reports[name])
    gave_way = _mend_uniqueness(connection, writing, judged, violated=moving)
    left = {table.staged.shape.table.name for table in judged if former.remember(connection, table)}
    for table in judged:
        write_table(connection, writing, table, reports[table.staged.shape.name], moving=moving)
    for each in gave_way:
        uniqueness.stamp(connection, each.shape)
        reports[each.shape.name] = _with_conflicts(reports[each.shape.name], each.logged)
    writing.progress("constraints")
    if waits or any(table.exceptional or _is_checked(table.staged.shape.table) for table in judged):
        run(connection, *ANY_PLAN)
    for name, lost in foreign_keys.Mending(connection, writing.job, judged, left).run().items():
        reports[name] = _with_conflicts(reports.get(name, TableReport(table=name)), lost)
    verification.verify(connection, judged, writing.site)
    for table in judged:
        if table.exceptional:
            waiting.remember(connection, table, writing.job)
    _let_go(connection, writing, [each for each in staged if each.shape.name in waits])
    return reports


def _let_go(connection: Connection, writing: Writing, awaited: Sequence[Staged]) -> None:
    """The rows that waited, and need not any more."""
    for each in awaited:
        if writing.session is not None and each.rows:
            waiting.withdraw(connection, writing.job.link, each, writing.session.source_origin)
    waiting.forget(connection, writing.job.link, [each.shape for each in awaited])


def _with_waiting(connection: Connection, writing: Writing, staged: Staged) -> Staged:
    return waiting.bring(connection, writing.job.link, staged, writing.job.target.max_clock_skew)


def _is_checked(table: Table) -> bool:
    """Has it anything that only a statement of ours can see to be true?"""
    return bool(table.foreign_keys or table.referring or table.deferrable_unique)


def _lock(
    connection: Connection, writing: Writing, staged: Sequence[Staged], *, locked: bool
) -> list[Staged]:
    """The staged tables, parents first, each found as it was when the rows were read."""
    ordered = _parents_first([each for each in staged if each.rows])
    writing.progress("lock")
    if not ordered:
        return []
    marked_edits.lock(connection, [each.shape for each in ordered])
    now = read_storage(
        connection,
        [each.shape.table.name for each in ordered],
        *BY_KEY,
        *(f"ANALYZE {each.sql}" for each in ordered),
        # Nobody alters them from here on.
        *(f"LOCK TABLE ONLY {each.shape.table.sql} IN ROW EXCLUSIVE MODE" for each in ordered),
    )
    _refuse_altered(now, ordered, writing.site)
    for each in ordered:  # from here on staged text becomes values
        if locked or each.shape.marks is not None:
            guard.lock(connection, each)
    for each in ordered:
        if each.shape.marks is not None:
            marked_edits.register_staged(connection, each)
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
        bound = each.shape.policy.bound(writing.job.priorities, each.shape.forms)
        chains = bound if writing.asks else bound.unasked
        held = locked or each.shape.marks is not None
        watch, converts = writing.watch(each.shape.name), writing.session is not None
        terms = guard.Terms(_damaged(writing, each), watch, held, converts)
        table, report = judge_table(connection, writing.job, each, chains, ordinal, terms)
        judged.append(table)
        reports[each.shape.name] = report
    verdicts = {
        each.staged.shape.name: (each.staged.shape, each.verdicts) for each in judged if each.exceptional
    }
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

    most, references = writing.job.max_quarantined, care is not Care.ROWS
    rehearsal.Rehearsal(connection, suspects, most, writing.site, mend, references).run()
    left, reports = [], {}
    for each in suspects:
        tally = guard.tally(connection, each.judged.verdicts)
        adopted = tally.get("source_stays", 0)
        left.append(replace(each.judged, exceptional=sum(tally.values()), adopted=adopted))
        reports[each.shape.name] = _report(each.judged.staged, tally)
    return left, reports


def _mend_uniqueness(
    connection: Connection, writing: Writing, judged: Sequence[Judged], *, violated: bool
) -> list[uniqueness.Lost]:
    """The tables in which rows gave way to others."""
    found = []
    for table in judged:
        shape = table.staged.shape
        former.open_for(connection, shape)
        if lost := uniqueness.mend(connection, table, writing.job, violated=violated):
            found.append(lost)
    return found


def _with_keys(connection: Connection, table: Judged, report: TableReport) -> TableReport:
    if not report.inserted_for_update:
        return report
    keys = guard.converted(connection, table.staged.shape, table.verdicts)
    return report.model_copy(update={"keys_inserted": keys})


def _with_conflicts(report: TableReport, more: int) -> TableReport:
    return report.model_copy(update={"conflicts": report.conflicts + more})


def _refuse_altered(now: Mapping[TableName, Storage], staged: Sequence[Staged], site: str) -> None:
    """Their locks keep the tables as they are from here on; were they altered before? (F87)

    A cast needs no lock of the table: one that is made from here on is seen by the next run alone.
    """
    tables = {each.shape.table.name: each.shape.table for each in staged}
    if wrong := [str(name) for name, table in tables.items() if _is_altered(table, now.get(name))]:
        raise StructureChanged(
            f"{site}: {', '.join(wrong)}: the columns were altered while rows were on their way; nothing was written"
        )
    casts = {name: now[name].casts - table.casts for name, table in tables.items()}
    if made := [f"{name} has the cast {cast}" for name in casts for cast in sorted(casts[name])]:
        raise StructureChanged(
            f"{site}: {', '.join(made)}, made while rows were on their way; it would run with the rights of Concord's"
            " logins, so nothing was written; drop it"
        )


def _is_altered(table: Table, now: Storage | None) -> bool:
    return now is None or now.structure != table.structure


def _parents_first(staged: Sequence[Staged]) -> list[Staged]:
    by_name = {each.shape.table.name: each for each in staged}
    return [by_name[name] for name in verification.parents_first([each.shape.table for each in staged])]


def _damaged(writing: Writing, staged: Staged) -> str:
    """A backfill's question about two equal versions; nothing else doubts them."""
    if writing.job.interval is None or writing.session is None:
        return "false"
    return restoration.damaged(staged.shape, writing.session.source_origin)


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
        guard.hold(connection, staged, verdicts)
    if tally.keys() & {"retake", "merged"}:
        with any_plan(connection):
            guard.retake(connection, staged, found, chains)
            tally = guard.tally(connection, found)
            _refuse_to_guess(connection, job, staged, found, tally)
            if tally.get("merged", 0):
                merged_row.stamp(connection, found)
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
    return judged, _report(staged, tally)


def _refuse_to_guess(
    connection: Connection, job: LinkJob, staged: Staged, verdicts: str, tally: Mapping[str, int]
) -> None:
    """Raises DecideAgain."""
    if asked := tally.get("again"):
        table = staged.shape.name
        raise DecideAgain(
            f"{job.target.name}: {table}: {how_many(asked, 'row')} met versions that their function was not shown",
            met={table: guard.to_ask(connection, staged.shape, verdicts)},
        )


def _report(staged: Staged, tally: Mapping[str, int]) -> TableReport:
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
        logged = merge.log_conflicts(connection, judged, job.synchronization, job.link, job.transmission)
        merge.log_merged(connection, judged, job.synchronization, job.link, job.transmission)
        if job.interval is not None:
            restoration.log(connection, judged, job)
    return report.model_copy(update={"conflicts": logged + report.merged})


def write_table(
    connection: Connection, writing: Writing, judged: Judged, report: TableReport, *, moving: bool
) -> None:
    """Base rows, then shadow rows, as applications do: none of them is ever the one that closes a circle.

    An application that edits a row in between waits for the base row; one that was faster has left its version.
    """
    shape = judged.staged.shape
    writing.progress("base")
    merge.write_base(connection, judged, moving=moving)
    identity_ranges.advance(connection, judged, writing.wanted(shape.name), writing.site)
    writing.progress("shadow")
    written = report.applied + judged.adopted
    merge.write_shadow(connection, judged, expected=written, watch=writing.watch(shape.name))
    marked_edits.remember_written(connection, shape, judged.winners)
    if judged.exceptional:
        merge.announce_losers(connection, judged)
        if shape.shadow.keeps_base:
            with any_plan(connection):
                merge.remember_incoming(connection, judged)
