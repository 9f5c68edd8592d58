"""Transactions that were found committed become entries: each gets its number, in the order of commits (S0-11, S4-113).

An entry is visible in the new snapshot and was not in the one before. Among these, the last number that each drew says
which came first: whichever waited for another, drew later (S0-12, S0-13). Nobody's commit waits for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from concord.databases.contract.replication_ends import LogEnd
from concord.databases.postgresql.facts.connection import Connection, in_transaction, one, run

#: Operations that are visible now, and were not when the last entries got their numbers; `l` is the last entry.
_LATER = "concord.operation o WHERE o.transaction >= pg_snapshot_xmax(l.snapshot)"
_UNDER_WAY = (
    "pg_snapshot_xip(l.snapshot) AS x(transaction) JOIN concord.operation o ON o.transaction = x.transaction"
)
_LOCKED = "SELECT FROM concord.last_entry FOR UPDATE"

#: A number grows by the bytes of its entry, and by more than the entry has places: each operation has one of its own.
_NUMBERED = f"""
WITH new AS (
  SELECT n.* FROM concord.last_entry l
   CROSS JOIN LATERAL (SELECT o.transaction, o.place, o.at, o.bytes FROM {_LATER}
                       UNION ALL SELECT o.transaction, o.place, o.at, o.bytes FROM {_UNDER_WAY}) n
), ended AS (
  SELECT transaction, min(place) AS first_place, max(place) AS last_place, max(at) AS at,
         greatest(sum(bytes), max(place) - min(place) + 2)::bigint AS size FROM new GROUP BY transaction
), placed AS (
  SELECT *, sum(size) OVER (ORDER BY last_place ROWS UNBOUNDED PRECEDING)::bigint AS until FROM ended
), numbered AS (
  INSERT INTO concord.entry (number, since, transaction, first_place, last_place, at)
  SELECT l.number + p.until, l.number + p.until - p.size, p.transaction, p.first_place, p.last_place, p.at
    FROM placed p CROSS JOIN concord.last_entry l RETURNING number
)
UPDATE concord.last_entry
   SET number = greatest(number, (SELECT max(n.number) FROM numbered n)), snapshot = pg_current_snapshot()"""

_END = f"""
SELECT l.number, now(), EXISTS (SELECT FROM {_LATER}) OR EXISTS (SELECT FROM {_UNDER_WAY}) FROM concord.last_entry l"""

#: Bytes of operations that have no number yet.
_UNNUMBERED = f"""
SELECT sum(n.bytes) FROM (SELECT o.bytes FROM {_LATER} UNION ALL SELECT o.bytes FROM {_UNDER_WAY}) n"""

#: Bytes of operations until now.
BYTES = f"(SELECT l.number + coalesce(({_UNNUMBERED}), 0) FROM concord.last_entry l)::bigint"


class Begun(NamedTuple):
    """Operations that are kept from here on."""

    level: int  #: that of the last entry which is in the snapshot
    snapshot: str  #: the tables at this level


def end(connection: Connection) -> LogEnd:
    """All that is committed by now has its number, on disk before anybody hears of it."""
    number, at, more = one(connection, _END)
    if more:
        with in_transaction(connection, "SET LOCAL synchronous_commit = on", _LOCKED):
            run(connection, _NUMBERED)
        (number,) = one(connection, "SELECT number FROM concord.last_entry")
    return LogEnd(int(number), at)


def begin(connection: Connection, snapshot: str, kept: Callable[[int], str]) -> int:
    """The number of the last entry in an exported snapshot: all that is visible there has its number, and nothing else.

    `kept` is the statement by which later ones are kept. Raises SerializationFailure where others
    were numbered since: take another snapshot.
    """
    first = ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", f"SET TRANSACTION SNAPSHOT '{snapshot}'")
    with in_transaction(connection, *first, _LOCKED):
        run(connection, _NUMBERED)
        (level,) = one(connection, "SELECT number FROM concord.last_entry")
        run(connection, kept(int(level)))
    return int(level)
