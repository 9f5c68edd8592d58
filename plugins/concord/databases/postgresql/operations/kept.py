"""For how long operations are kept: until each replication of their table has passed them (S0-30)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from concord.databases.contract.last_entry import LastEntry, confirmed_beyond, not_reached
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, in_transaction, rows, run
from concord.databases.postgresql.operations.numbering import BYTES
from concord.databases.postgresql.operations.triggers import array
from concord.messages.errors import HistoryLost

#: Operations of tables that no replication reads, or that none of them has begun with.
_UNKEPT = (
    "DELETE FROM concord.operation o WHERE NOT EXISTS"
    " (SELECT FROM concord.kept_operations k WHERE o.relation = ANY (k.relations))"
)
_LARGEST = 2**63 - 1
_GONE = "DELETE FROM concord.kept_operations WHERE incarnation <> (SELECT incarnation FROM concord.site) OR"
#: Two that pass an entry at once do so one after the other: the second one deletes it.
LOCKED = "SELECT FROM concord.kept_operations ORDER BY replication FOR UPDATE"


class Kept(NamedTuple):
    """One replication, as its publisher remembers it."""

    level: int  #: its subscriber has everything up to it on disk
    relations: frozenset[int]
    incarnation: int
    end: int  #: the number of the last entry
    incarnation_now: int


def read(connection: Connection, replication: str) -> Kept | None:
    """None where nothing is kept for it."""
    found = rows(
        connection,
        "SELECT k.level, k.relations::bigint[], k.incarnation, l.number, s.incarnation FROM concord.kept_operations k"
        f" CROSS JOIN concord.last_entry l CROSS JOIN concord.site s WHERE k.replication = {literal(replication)}",
    )
    if not found:
        return None
    [(level, relations, *others)] = found
    return Kept(level, frozenset(relations), *others)


def is_kept(connection: Connection, replication: str, relations: Collection[int]) -> bool:
    """Are operations of exactly these tables kept for it, since the site was last brought back?"""
    kept = read(connection, replication)
    return (
        kept is not None
        and kept.incarnation == kept.incarnation_now
        and kept.relations == frozenset(relations)
    )


def standing(replication: str, since: int) -> str:
    """Query: bytes of operations after `since`, and bytes that all operations take; the publisher's clock, and since
    when the first operation waits. No row where none are kept."""
    waits = (
        "SELECT min(o.at) FROM concord.operation o LEFT JOIN concord.entry e USING (transaction)"
        f" WHERE o.relation = ANY (k.relations) AND (e.number IS NULL OR e.number > {since})"
    )
    return (
        f"SELECT {BYTES} - {since}, pg_total_relation_size('concord.operation'), now(), ({waits})"
        f" FROM concord.kept_operations k WHERE k.replication = {literal(replication)}"
    )


def refuse_lost(
    connection: Connection,
    replication: str,
    level: int,
    relations: Collection[int],
    source: str,
    target: str,
    *,
    only: bool = True,
) -> int:
    """Returns the level that the subscriber has confirmed. Raises HistoryLost where the operations after the
    subscriber's level are not all there.

    `only`: of these tables and no others.
    """
    again = f"run the replication's initialize__{replication}"
    kept = read(connection, replication)
    if kept is None:
        raise HistoryLost(f"{source}: no operations are kept for {replication}; {again}")
    if kept.level > level:
        raise HistoryLost(confirmed_beyond(source, target, replication))
    if level > kept.end or kept.incarnation != kept.incarnation_now:
        raise HistoryLost(not_reached(source, target, replication))
    wanted = frozenset(relations)
    if wanted != (kept.relations if only else kept.relations & wanted):
        raise HistoryLost(
            f"{source}: {replication} has other tables than when it was initialized, or one was made anew; {again}"
        )
    return kept.level


def newest(
    connection: Connection, relations: Collection[int], confirmed: int, level: int
) -> LastEntry | None:
    """The last entry of these tables after the confirmed level and up to the other one; None where there is none."""
    found = rows(
        connection,
        f"SELECT e.number, e.at FROM concord.entry e WHERE e.number > {confirmed} AND e.number <= {level} AND EXISTS"
        " (SELECT FROM concord.operation o WHERE o.transaction = e.transaction"
        f" AND o.relation = ANY ({array(sorted(relations))})) ORDER BY e.number DESC LIMIT 1",
    )
    return LastEntry(*found[0]) if found else None


def beginning(replication: str, relations: Sequence[int], level: int) -> str:
    """Statement: operations after the level are kept for it, or go on being kept."""
    return (
        "INSERT INTO concord.kept_operations (replication, level, relations, incarnation)"
        f" SELECT {literal(replication)}, {level}, {array(relations)}, incarnation FROM concord.site"
        " ON CONFLICT (replication) DO UPDATE SET relations = excluded.relations"
    )


def confirm(connection: Connection, replication: str, level: int) -> None:
    """The subscriber has everything up to the level on disk; entries that all have passed are deleted."""
    mine = f"replication = {literal(replication)}"
    with in_transaction(connection, "SET LOCAL synchronous_commit = off", LOCKED):
        found = rows(
            connection, f"SELECT level FROM concord.kept_operations WHERE {mine} AND level < {level}"
        )
        if found:
            moved = f"UPDATE concord.kept_operations SET level = {level} WHERE {mine}"
            run(connection, moved, *_passed(int(found[0][0]), level))


def _passed(since: int, level: int) -> list[str]:
    """Statements: those among the entries after `since` that nobody needs any more go, with their operations."""
    among = f"e.number > {since} AND e.number <= {level}"
    return [
        f"DELETE FROM concord.operation o USING concord.entry e WHERE {among} AND o.transaction = e.transaction"
        " AND NOT EXISTS (SELECT FROM concord.kept_operations k"
        " WHERE k.level < e.number AND o.relation = ANY (k.relations))",
        f"DELETE FROM concord.entry e WHERE {among}"
        " AND NOT EXISTS (SELECT FROM concord.operation o WHERE o.transaction = e.transaction)",
    ]


def drop(connection: Connection, replication: str) -> None:
    """Nothing is kept for it from here on, nor from before the site was brought back."""
    with in_transaction(connection, LOCKED):
        run(connection, f"{_GONE} replication = {literal(replication)}", _UNKEPT, *_passed(0, _LARGEST))


def only(replications: Collection[str]) -> list[str]:
    """Statements: whatever is kept for other replications goes."""
    listed = ", ".join(map(literal, sorted(replications)))
    return [
        LOCKED,
        f"{_GONE} replication <> ALL (ARRAY[{listed}]::text[])",
        _UNKEPT,
        *_passed(0, _LARGEST),
    ]
