"""A loser is brought back: its row becomes a new local version at the site that decided, and every link follows.

One small transaction of the applier's, in which capture makes the version as for any edit of a user's. It includes
both the winner and the loser, so it simply applies wherever nobody has edited the row meanwhile. The site remembers
it in the same transaction, so that it happens once, however often it is asked for or killed.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from psycopg.rows import class_row

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.constraints import decided_rows
from concord.databases.postgresql.facts.connection import Connection, in_transaction, rows, run
from concord.databases.postgresql.rows import large_rows, stage
from concord.databases.postgresql.rows.repetition import Commit, repeat
from concord.databases.postgresql.rows.row_keys import listed
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.rows.stage import Staged
from concord.databases.postgresql.sites.end import worded
from concord.databases.postgresql.sites.ends import Target
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.ledger import Entry, Overturn, dot
from concord.jobs.link import LinkJob
from concord.messages.errors import OverturnRefused
from concord.tables.replication_set import ReplicatedTable
from concord.versions.conflict import ConflictType

#: The site's own triggers have seen both rows; capture is ENABLE ALWAYS, and takes this for the edit that it is.
_SETTINGS = (
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL deadlock_timeout = '20ms'",
    "SET LOCAL lock_timeout = '500ms'",
    "SET LOCAL synchronous_commit = on",
)

#: The winner is a version of another row: the row that lost has never been what won.
_BETWEEN_ROWS = (ConflictType.UNIQUENESS, ConflictType.FOREIGN_KEY)


def overturn(job: LinkJob, entry: Entry, person: str, *, although_changed: bool) -> Overturn:
    """Write the loser of `entry` at the target of `job`, the site that decided it, and remember who asked for it.

    `although_changed`: even if the row is no longer what won. Raises OverturnRefused, and whatever a site may raise.
    """
    wanted = next(table for table in job.tables if table.name == entry.table_name)
    with closing(_Overturning(job)) as site:
        return site.overturn(wanted, entry, person, although_changed=although_changed)


class _Overturning(Target):
    """The site, for as long as one loser is brought back."""

    @worded
    def overturn(
        self, wanted: ReplicatedTable, entry: Entry, person: str, *, although_changed: bool
    ) -> Overturn:
        (shape,), _ = self.inspect([wanted])
        _refuse_unfit(shape, entry)
        done: list[Overturn] = []

        def attempt(connection: Connection, *, violations: int) -> None:
            with in_transaction(connection, *_SETTINGS):
                done[:] = [self._attempt(connection, shape, entry, person, although_changed)]

        commit = Commit(self.at_hand, self.job.link, None, self.access.name, bool(shape.private))
        repeat(commit, attempt)
        return done[0]

    def _attempt(
        self, connection: Connection, shape: Shape, entry: Entry, person: str, although_changed: bool
    ) -> Overturn:
        _refuse_second(connection, entry)
        before = _locked(connection, shape, entry)
        if not although_changed:
            _refuse_changed(connection, shape, entry, before)
        judged = self._staged(connection, shape, entry)
        decided_rows.write_base(connection, self.job, judged)
        after = _version(connection, shape, entry)
        if after is None or (before is not None and dot(after) == dot(before)):
            raise OverturnRefused(
                f"{entry.short_id}: the row is as the loser was already; nothing was written"
            )
        run(connection, f"DROP TABLE {judged.staged.sql}")
        return _remember(connection, (entry.id, person, json.dumps(after), although_changed))

    def _staged(self, connection: Connection, shape: Shape, entry: Entry) -> Judged:
        """The loser as a link would have staged it, with no version of its own: capture makes one."""
        staged = Staged(shape, stage.staging_name(self.job.transmission, 0), (0,), 1)
        stage.create(connection, staged)
        image = entry.loser_row
        given = {shape.alias(c): f"w.{c.sql}::{c.type.staging}" for c in shape.key}
        if image is not None:
            given |= {shape.alias(c): f"{literal(image[c.name])}::{c.type.staging}" for c in shape.columns}
        given |= {"deleted": literal(image is None), "out_of_scope": "false", "attempt": "0"}
        columns, values = ", ".join(given), ", ".join(given.values())
        run(connection, f"INSERT INTO {staged.sql} ({columns}) SELECT {values} FROM {_key(shape, entry)}")
        return Judged(staged, "", 0, self.job.source.name, self.access.name)


def _key(shape: Shape, entry: Entry) -> str:
    """The entry's key as a relation `w`."""
    return listed(shape, [json.dumps(entry.key)])


def _refuse_unfit(shape: Shape, entry: Entry) -> None:
    if shape.registers:
        found = "in the log" if shape.by_log else "by marks of the application"
        raise OverturnRefused(
            f"{entry.short_id}: the changes of {entry.table_name} are found {found}; put the row"
            " back there yourself, as `conflicts show` prints it"
        )
    image = entry.loser_row
    if image is not None and set(image) != set(shape.names):
        unlike = ", ".join(sorted(set(image) ^ set(shape.names)))
        raise OverturnRefused(
            f"{entry.short_id}: {entry.table_name} at {entry.site} had other columns then ({unlike}); put the row back"
            " there yourself, as `conflicts show` prints it"
        )


def _refuse_second(connection: Connection, entry: Entry) -> None:
    query = f"SELECT person, overturned_at FROM concord.overturn WHERE conflict = {literal(entry.id)}"
    for person, moment in rows(connection, query):
        raise OverturnRefused(f"{entry.short_id}: {person} overturned it at {moment:%Y-%m-%d %H:%M:%S} UTC")


def _locked(connection: Connection, shape: Shape, entry: Entry) -> dict[str, Any] | None:
    """The version that is present, locked as applications do: the base row, then the shadow row."""
    key = _key(shape, entry)
    run(
        connection,
        f"SELECT 1 FROM {shape.table.sql} t JOIN {key} ON {shape.same_key('t', 'w')} FOR UPDATE OF t",
    )
    run(
        connection,
        f"SELECT 1 FROM {shape.shadow.sql} p JOIN {key} ON {shape.same_key('p', 'w')} FOR UPDATE OF p",
    )
    return _version(connection, shape, entry)


def _version(connection: Connection, shape: Shape, entry: Entry) -> dict[str, Any] | None:
    found = rows(
        connection,
        "SELECT jsonb_build_object('origin', p.origin, 'changed_at', p.changed_at, 'derived', p.derived,"
        f" 'vector', p.vector, 'deleted', p.deleted) FROM {shape.shadow.sql} p"
        f" JOIN {_key(shape, entry)} ON {shape.same_key('p', 'w')}",
    )
    return dict(found[0][0]) if found else None


def _refuse_changed(
    connection: Connection, shape: Shape, entry: Entry, present: dict[str, Any] | None
) -> None:
    """A version that was forgotten since is no change while the row is what won: nobody has edited it, or brought it
    back.

    The decision itself edited the row that gave way to another row, and nothing tells that edit from a user's.
    """
    if entry.conflict_type in _BETWEEN_ROWS:
        raise OverturnRefused(
            f"{entry.short_id}: it gave way to another row ({entry.reason}), and may have been edited at {entry.site}"
            " since; make room for it there, look at it, and overturn it with --even-if-changed (even_if_changed)"
        )
    if present is None or not present["origin"]:
        unchanged = not entry.winner[0] or _row(connection, shape, entry) == entry.winner_row
    else:
        unchanged = dot(present) == entry.winner
    if not unchanged:
        raise OverturnRefused(
            f"{entry.short_id}: the row was changed at {entry.site} since it was decided; look at it there, and"
            " overturn it with --even-if-changed (even_if_changed) if its present content may go"
        )


def _row(connection: Connection, shape: Shape, entry: Entry) -> dict[str, Any] | None:
    """As the log keeps rows."""
    key = f"{_key(shape, entry)} ON {shape.same_key('t', 'w')}"
    found = rows(
        connection, f"SELECT {large_rows.image_or_key(shape, 't')} FROM {shape.table.sql} t JOIN {key}"
    )
    return dict(found[0][0]) if found else None


def _remember(connection: Connection, done: tuple[str, str, str, bool]) -> Overturn:
    cursor = connection.cursor(row_factory=class_row(Overturn))
    statement = (
        "INSERT INTO concord.overturn (conflict, person, version, although_changed)"
        f" VALUES ({', '.join(literal(value) for value in done)}) RETURNING *"
    )
    remembered = cursor.execute(statement.encode()).fetchone()
    assert remembered is not None, "an INSERT … RETURNING returns its row"
    return remembered
