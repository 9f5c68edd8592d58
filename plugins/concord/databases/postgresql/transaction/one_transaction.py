"""The one target transaction of a transmission: all of it is visible at once, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import psycopg

from concord.databases.postgresql.capture import by_log
from concord.databases.postgresql.constraints.repaired_rows import RepairedRows
from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.ledger import reinitialization, waiting_table
from concord.databases.postgresql.rows import link_state
from concord.databases.postgresql.rows.repetition import COLLISIONS, RACES, Commit, repeat
from concord.databases.postgresql.transaction.tables_written import write_tables
from concord.databases.postgresql.write.writing import Care, Writing
from concord.jobs.link import TableReport
from concord.messages.errors import ConstraintViolated

#: Applications never give way. The applier looks for a deadlock at once, and gives up any wait before an
#: application's own deadlock_timeout (1 s by default) could end the application instead.
SETTINGS = (
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL concord.applying = 'on'",
    by_log.APPLIED,
    "SET LOCAL deadlock_timeout = '20ms'",
    "SET LOCAL lock_timeout = '500ms'",
    "SET LOCAL synchronous_commit = on",
    # Staged rows are looked at once: how many rows there are matters to its plans, hardly their values.
    "SET LOCAL default_statistics_target = 10",
    # It is sorted twice, and each statement keeps what it changed for its triggers. More stays as it was set.
    "SELECT set_config('work_mem', '64MB', true)"
    " WHERE pg_size_bytes(current_setting('work_mem')) < pg_size_bytes('64MB')",
)


def write(connect: Callable[[], Connection], writing: Writing) -> dict[str, TableReport]:
    """Write the staged rows and the session in one transaction; the rows per outcome of each table.

    Raises WriteContended, ConstraintViolated, LeaseLost, SiteUnavailable.
    """
    reports: dict[str, TableReport] = {}
    tries, repaired = count(), RepairedRows()

    def attempt(connection: Connection, *, violations: int) -> None:
        values_move, care = violations > 0, Care.NONE
        again = next(tries) > 0
        while True:
            reports.clear()
            try:
                _attempt(
                    connection, writing, reports, repaired, values_move=values_move, care=care, locked=again
                )
            except (psycopg.Error, ConstraintViolated) as error:
                if care is Care.REFERENCES or not _is_about_rows(error, violations, writing):
                    raise
                care = Care(care + 1)
            else:
                return

    session = None if writing.session is None else writing.session.id
    private = any(table.is_private for table in writing.job.tables)
    tables = {each.shape.name: each.shape.table.oid for each in writing.staged}
    commit = Commit(connect, writing.job.link, session, writing.site, private, tables)
    repeat(commit, attempt)
    return reports


def _is_about_rows(error: Exception, violations: int, writing: Writing) -> bool:
    """Can the write go on without the rows that were refused? A repair names them instead (`compare.md`)."""
    if writing.session is None or not writing.job.max_quarantined:
        return False
    if isinstance(error, COLLISIONS):
        return violations + 1 >= RACES
    return isinstance(error, ConstraintViolated) or (isinstance(error, psycopg.Error) and is_refusal(error))


def _attempt(
    connection: Connection,
    writing: Writing,
    reports: dict[str, TableReport],
    repaired: RepairedRows,
    *,
    values_move: bool,
    care: Care,
    locked: bool,
) -> None:
    """One try; `reports` is filled before the commit, so that it is known even when the answer is lost."""
    writing.progress("hold_fence")
    job = writing.job
    fence, waits = (job.synchronization, job.epoch, writing.site), waiting_table.counting(job.link)
    with link_state.fenced(connection, *fence, *SETTINGS, then=(waits,)) as begun:
        if writing.staged:
            waiting = dict(begun.answered[-1])
            reports |= write_tables(
                connection, writing, waiting, repaired, values_move=values_move, care=care, locked=locked
            )
            reinitialization.ask(connection, writing.job, reports.values())
        if writing.session is not None and writing.job.moves_positions:
            writing.progress("link_state")
            begun.last.append(link_state.remembering(writing.job.link, writing.state, writing.session))
        writing.progress("commit")
