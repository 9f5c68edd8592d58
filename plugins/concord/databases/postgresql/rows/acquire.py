"""Which changes a link has not sent yet: exact, by snapshots, with no tolerance window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

import psycopg

from concord.databases.contract.ends import Cut
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture import before_image
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, answers, one, run
from concord.databases.postgresql.facts.session import PIN
from concord.databases.postgresql.rows import marked_edits
from concord.databases.postgresql.rows.shape import Shape
from concord.values.interval import Interval

#: The position of a link that has sent nothing: no transaction is visible in it.
BEGINNING = "1:1:"

#: Small queries that go into one statement: its time grows faster than their number.
PER_STATEMENT = 50


@contextmanager
def open_cut(connection: Connection, settings: Sequence[str] = ()) -> Iterator[Cut]:
    """Hold one cut open, a REPEATABLE READ snapshot, for as long as its readers need it (F06, F07)."""
    try:
        yield Cut(
            *one(
                connection,
                "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
                *settings,
                "SELECT pg_current_snapshot()::text, pg_export_snapshot()",
            )
        )
    finally:
        # A dead source has nothing to roll back; what went wrong first is what must be told.
        with suppress(psycopg.OperationalError):
            run(connection, "ROLLBACK")


def beat(connection: Connection, position: str | None = None) -> int:
    """One durable write after the cut: its commit record keeps used transaction ids used.

    Without it a crash lets the counter restart below the cut. New rows under reused ids would be taken for old
    ones (F67). Triggers that keep before-images are told the `position` of a link's
    cut: what it shows is on its way. Returns the new heartbeat.
    """
    shown = "" if position is None else f", acquired = {literal(position)}"
    (heartbeat,) = one(
        connection,
        "SET LOCAL synchronous_commit = on",
        f"UPDATE concord.site SET heartbeat = heartbeat + 1{shown} RETURNING heartbeat",
    )
    return int(heartbeat)


def arrived(since: str, alias: str = "p") -> str:
    """Condition on a shadow row: it arrived after the position. The range lets the index find it."""
    return (
        f"{alias}.position >= pg_snapshot_xmin({literal(since)}::pg_snapshot)"
        f" AND NOT pg_visible_in_snapshot({alias}.position, {literal(since)}::pg_snapshot)"
    )


def _spoken_of(fingerprint: str | None, alias: str = "p") -> str:
    """Which shadow rows the link may speak of: a row that has left another link's filter is no news to it.

    Sites beyond a link of the same filter must hear of it; those under another one keep what they have. A placeholder
    that a link has locked and not filled (`guard.lock`) is nobody's change: sent, it would be a delete nobody made.
    An agreed version all sites have had, and one that has forgotten it must not hear of it again (rule 10).
    """
    own = f" OR {alias}.out_of_scope = {literal(fingerprint)}" if fingerprint else ""
    return f" AND {alias}.origin <> '' AND NOT {alias}.agreed AND ({alias}.out_of_scope IS NULL{own})"


def _fingerprint(shape: Shape) -> str | None:
    return shape.where.fingerprint if shape.where else None


def unsent(since: str, peer: str, fingerprint: str | None) -> str:
    """Condition on a shadow row: a link to `peer` that goes on from its newest session would look at it."""
    return f"{arrived(since)}{_unless_from(peer)}{_spoken_of(fingerprint)}"


def _unless_from(site: str | None, alias: str = "p") -> str:
    """Rule 2: what the other end itself wrote here need not go back to it."""
    return "" if site is None else f" AND {alias}.received_from IS DISTINCT FROM {literal(site)}"


def count_arrived(
    connection: Connection,
    shapes: Sequence[Shape],
    since: Mapping[str, str],
    excluded: str | None,
    interval: Interval | None = None,
) -> dict[str, int]:
    """Changed rows per table, in one round trip however many tables there are."""
    counts = [
        f"SELECT {literal(shape.name)}, count(*) FROM {shape.shadow.sql} p"
        f"{_base(shape) if interval or shape.by_log else _if_marked(shape)}"
        f" WHERE {_wanted(shape, since[shape.name], excluded, interval)}"
        for shape in shapes
    ]
    return dict(together(connection, counts))


def together(connection: Connection, queries: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of many queries of equal columns, in one round trip. They go a few at a time, since one statement of
    all of them would take more than twice as long."""
    some = (queries[at : at + PER_STATEMENT] for at in range(0, len(queries), PER_STATEMENT))
    return chain.from_iterable(answers(connection, *map(" UNION ALL ".join, some)))


def count_not_owned(
    connection: Connection, shapes: Sequence[Shape], since: Mapping[str, str]
) -> dict[str, int]:
    """Rows per table that users of this site changed since the position although another site owns them (S2-28).

    A deleted row cannot be asked any more, and is not counted. Looks at the changes alone.
    """
    counts = [
        f"SELECT {literal(shape.name)}, count(*) FROM (SELECT p.* FROM {shape.shadow.sql} p"
        f" WHERE {arrived(since[shape.name])} AND p.received_from IS NULL"
        f" AND split_part(p.origin, '#', 1) = {literal(shape.site)} OFFSET 0) p"
        f" CROSS JOIN LATERAL (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')}"
        f" AND NOT {shape.owned('t')} OFFSET 0) x"
        for shape in shapes
        if shape.ownership
    ]
    return dict(together(connection, counts))


def _wanted(shape: Shape, since: str, excluded: str | None, interval: Interval | None) -> str:
    """Condition on a shadow row: a backfill looks at its version, every other run at when it arrived."""
    if interval is None:
        unsent = f"{arrived(since)}{_unless_from(excluded)}{_spoken_of(_fingerprint(shape))}"
    else:
        unsent = f"{versioned(interval)} AND {_intact(shape)}"
    return unsent + _as_registered(shape)


def versioned(interval: Interval) -> str:
    """Condition on a shadow row: its version falls in the interval. No index finds it: every update would pay for
    one that only backfills use, so a backfill reads the shadow table from end to end."""
    return f"p.changed_at >= {interval.start} AND p.changed_at < {interval.end} AND p.origin <> ''"


def _intact(shape: Shape) -> str:
    """A backfill sends no row that went, or came, without a version: it would spread the damage it is to mend.

    Nor an agreed version, which every site has had and some may have forgotten (rule 10). Nor a row that is, or
    has gone, outside of the filter.
    """
    gone = f"t.{shape.key[0].sql} IS NULL"
    shared = f"p.out_of_scope IS NULL AND ({gone} OR {shape.in_scope('t')})"
    return f"p.deleted = ({gone}) AND NOT p.agreed AND {shared}"


def _base(shape: Shape) -> str:
    return _if_marked(shape) or f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'p')}"


def changes_query(
    shape: Shape, since: str, excluded: str | None, part: int, parts: int, interval: Interval | None = None
) -> str:
    """Changed rows with their versions, joined to their base rows in the same cut (F06).

    Deleted is what the base row says, not what the trigger recorded.
    """
    rows = _whole_rows(shape, before_image.outgoing(shape.base_types))
    return f"{rows} WHERE {_wanted(shape, since, excluded, interval)}{_part(part, parts)}"


def standing_query(shape: Shape, interval: Interval, met: str = "") -> str:
    """The target's rows of a backfill under the versions of the interval: whole rows, to compare."""
    return _and_met(shape, _whole_rows(shape), versioned(interval), met)


def _and_met(shape: Shape, chosen: str, condition: str, met: str) -> str:
    """The rows for which the condition holds, and others whose keys are listed in the relation `w`."""
    query = f"{chosen} WHERE {condition}"
    if not met:
        return query
    return f"{query} UNION ALL {chosen} JOIN {met} ON {shape.same_key('p', 'w')} WHERE NOT ({condition})"


def _whole_rows(shape: Shape, more: str = "") -> str:
    columns = [
        f"{column.type.outgoing(_side(shape, column.name))} AS {shape.alias(column)}"
        for column in shape.columns
    ]
    gone = f"t.{shape.key[0].sql} IS NULL"
    deleted = f"({gone} AND p.out_of_scope IS NULL)" if shape.marks is None else "p.deleted"
    out_of_scope = f"CASE WHEN {gone} THEN p.out_of_scope IS NOT NULL ELSE NOT {shape.in_scope('t')} END"
    version = _version(deleted, out_of_scope, vector="p.vector" if shape.is_relayed else _VECTOR)
    return f"SELECT {', '.join(columns)}, {version}{more} FROM {shape.shadow.sql} p{_base(shape)}"


def _as_registered(shape: Shape) -> str:
    """Further condition where the log tells of edits: leave out a row that was edited after it was registered. A row
    that is gone has no writer.

    The next run registers and sends it; this one would send the new content under the old version.
    """
    return f" AND t.xmin IS NOT DISTINCT FROM p.{WRITTEN_BY}" if shape.by_log else ""


def _if_marked(shape: Shape) -> str:
    """The same where the application keeps the marks."""
    if shape.marks is None:
        return ""
    return f" JOIN {shape.table.sql} t ON {shape.same_key('t', 'p')} AND NOT {marked_edits.changed(shape)}"


def _side(shape: Shape, column: str) -> str:
    """The key comes from the shadow row, since a deleted row has no other; its form from the base row (F42)."""
    found = shape.table.column(column)
    if column not in shape.shadow.key:
        return f"t.{found.sql}"
    told = shape.key_in("p", found)
    return f"coalesce(t.{found.sql}, {told})" if found.type.has_several_forms else told


#: Through Arrow it travels as text.
_VECTOR = "p.vector::text AS vector"


def _version(deleted: str, out_of_scope: str, vector: str = _VECTOR) -> str:
    return (
        f"p.origin, p.changed_at, p.derived, {vector},"
        f" {deleted} AS deleted, p.born, {out_of_scope} AS out_of_scope"
    )


def _part(part: int, parts: int) -> str:
    return "" if parts == 1 else f" AND (hashtid(p.ctid) & 2147483647) % {parts} = {part}"


def candidates_query(
    shape: Shape, since: str, excluded: str | None, more: Sequence[Column], met: str = ""
) -> str:
    """Key and version of the rows that the target has not told the source: only they can conflict (step 4).

    With `more` columns beside the key that must be seen, and then alone with a look at the base row. The target may
    have told versions that the source has not adopted (they wait there). They are in conflict as well, which the
    write step finds: those keys are `met`, a relation `w`.
    """
    brought = [(column, shape.key_in("p", column)) for column in shape.key]
    brought += [(column, f"t.{column.sql}") for column in more]
    columns = ", ".join(f"{column.type.outgoing(sql)} AS {shape.alias(column)}" for column, sql in brought)
    base = f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'p')}" if more else ""
    version = _version("p.deleted", "p.out_of_scope IS NOT NULL")
    chosen = f"SELECT {columns}, {version} FROM {shape.shadow.sql} p{base}"
    untold = f"{arrived(since)}{_unless_from(excluded)}{_spoken_of(_fingerprint(shape))}"
    return _and_met(shape, chosen, untold, met)


#: A reader's plan must follow the changes, never scan the base table (performance.md, Consequences).
READER_SETTINGS = (
    "SET LOCAL enable_seqscan = off",
    "SET LOCAL enable_hashjoin = off",
    "SET LOCAL enable_mergejoin = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",  # a site is read by as many connections as it allows (S0-45)
    PIN,
)


#: The question by which a reader proves that it stands in the cut it was given (F06).
POSITION_QUERY = "SELECT pg_current_snapshot()::text"


#: A backfill may have to look at much of a table; its plan is the database's own choice.
BACKFILL_SETTINGS = (PIN,)


def join_cut(exported: str, settings: Sequence[str] = READER_SETTINGS) -> list[str]:
    """The statements that another connection runs first to read in the same cut."""
    return [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
        f"SET TRANSACTION SNAPSHOT {literal(exported)}",
        *settings,
    ]
