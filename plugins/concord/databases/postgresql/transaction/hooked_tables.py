"""The hooks of a transaction's tables: asked once all rows are judged and locked, before any is written (S3-13)."""

from __future__ import annotations

from collections.abc import Sequence

from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.plans import any_plan
from concord.databases.postgresql.hooks import added_rows, hooked
from concord.databases.postgresql.hooks.hooked import Asked
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.transaction import one_table
from concord.databases.postgresql.write import too_large
from concord.databases.postgresql.write.judged import Judged
from concord.databases.postgresql.write.writing import Writing
from concord.jobs.link import TableReport


def any_of(writing: Writing, staged: Sequence[Staged]) -> bool:
    """Has one of the tables a hook?"""
    return any(writing.hook_of(each.shape.name) for each in staged)


def ask(
    connection: Connection, writing: Writing, judged: Sequence[Judged], reports: dict[str, TableReport]
) -> tuple[list[Judged], list[Asked]]:
    """The tables with their hooks' words heeded, and those that were asked; the reports follow. Raises HookFailed."""
    heeded, every = [], []
    for ordinal, table in enumerate(judged):
        hook = writing.hook_of(table.staged.shape.name)
        if hook is None:
            heeded.append(table)
            continue
        assert writing.ask_hook is not None, "a link with hooks is given somebody who asks them"
        writing.progress("hook")
        shown = hooked.hooked_of(table.staged.shape, hook)
        added_rows.refuse_unfit(connection, writing.site, writing.wanted(table.staged.shape.name))
        with any_plan(connection):
            bounded = too_large.hold_back_shown(connection, writing.job, table)
            asked = hooked.ask(connection, bounded, ordinal, shown, writing.ask_hook)
            left, tally = hooked.taken(connection, asked, writing.job.max_quarantined)
        heeded.append(left)
        every.append(asked)
        reports[table.staged.shape.name] = one_table.report_of(table.staged, tally)
    return heeded, every


def add(connection: Connection, every: Sequence[Asked]) -> None:
    """The rows that hooks add, for those alone that were written. Raises HookFailed."""
    for asked in every:
        by_name = {added.name: added for added in asked.hooked.hook.adds}
        for name, found in hooked.rows_added(asked):
            added_rows.insert(connection, asked.hooked, by_name[name], found)
