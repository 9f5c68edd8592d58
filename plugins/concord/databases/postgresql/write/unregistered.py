"""Edits of rows that a link is about to write, and that nobody has registered yet: none is written over unseen.

The log tells of an edit once it is read. So what is locked may hold one that no shadow row knows of (S1-32 b).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing

from concord.databases.contract.ends import Job
from concord.databases.postgresql.capture import untold_edits
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, connect, in_transaction, one, run
from concord.databases.postgresql.rows import logged_edits
from concord.databases.postgresql.rows.link_state import application_name
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.messages.errors import WriteContended


def register(job: Job, tables: Collection[str]) -> None:
    """Register at the link's target, from a session of its own, whatever has committed: what is locked is not edited
    meanwhile. No fence is asked for, since the link holds it. Raises HistoryLost where the log does not tell of one of
    the tables, and what a registration raises."""
    access = job.target
    assert access.log_reader is not None, "a rule of the configuration"
    with closing(connect(access.applier, application_name(job.synchronization))) as connection:
        made = logged_edits.register(access.log_reader, connection, in_transaction)
    made.refuse_lost(access.name, tables)


def refuse(connection: Connection, staged: Staged, locked: int, *, registered: bool, since: str) -> None:
    """Of the staged rows, `locked` base rows are locked, and all shadow rows. Raises WriteContended where a row has
    come meanwhile, or may have an edit that is not registered.

    `registered`: it was done since the lock. By that very fact all is known that a shadow row does not know yet.

    `since`: the snapshot before the lock.
    """
    shape = staged.shape
    if registered:
        _attribute(connection, staged, since)
    unknown = "false" if registered else f"{untold_edits.whole('t.concord_writer')} >= n.since"
    # A row that was born elsewhere, and of which nobody here has a version, has nobody here deleted. One that stands
    # by its version may be gone, and have no writer: triggers named none.
    missed = "NOT p.deleted OR p.origin = '' AND NOT (s.concord_born OR s.concord_gone)"
    deleted = "false" if registered else f"({missed})"
    absent, known = "t.concord_there IS NULL", f"p.{shape.shadow.key_column(shape.key_names[0])} IS NOT NULL"
    found = f"SELECT true AS concord_there, t.xmin AS concord_writer FROM {shape.table.sql} t"
    there, edited = one(
        connection,
        f"""
SELECT count(t.concord_there),
       coalesce(bool_or(CASE WHEN {known} THEN p.{WRITTEN_BY} IS DISTINCT FROM t.concord_writer
                                               OR {absent} AND {deleted}
                             WHEN {absent} THEN true ELSE {unknown} END), false)
  FROM {staged.typed} s
 CROSS JOIN (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS now,
                    pg_snapshot_xmin(registered)::text::bigint AS since FROM concord.log_capture) n
  LEFT JOIN LATERAL ({found} WHERE {shape.same_key("t", "s")} OFFSET 0) t ON true
  LEFT JOIN {shape.shadow.sql} p ON {shape.same_key("p", "s")}""",
    )
    if edited or there != locked:
        raise WriteContended(
            f"{shape.site}: {shape.name}: a row was edited while it was about to be written; an application was faster"
        )


def _attribute(connection: Connection, staged: Staged, since: str) -> None:
    """Whose the rows are that stand, or do not. A row may come, be registered and go since the lock, which held
    nothing of it: its going has not been registered."""
    shape = staged.shape
    now = writer(shape, "s")
    gone_before = f"p.deleted OR {row_version.unchanged(since)}"
    run(
        connection,
        f"UPDATE {shape.shadow.sql} p SET {WRITTEN_BY} = {now} FROM {staged.typed} s"
        f" WHERE {shape.same_key('p', 's')} AND p.{WRITTEN_BY} IS DISTINCT FROM {now}"
        f" AND ({now} IS NOT NULL OR {gone_before})",
    )


def writer(shape: Shape, row: str) -> str:
    """The writer of the base row that stands under the key of this row now; NULL where none does."""
    return f"(SELECT t.xmin FROM {shape.table.sql} t WHERE {shape.same_key('t', row)})"
