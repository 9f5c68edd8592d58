"""A publisher's record of each copy that was taken while its log was kept already.

The kept log begins before such a copy, and so does the log of a publisher that was restored to a time before the copy.
The record distinguishes the two: the restored publisher lacks it.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, in_transaction, rows, run

STATEMENTS = [
    """
CREATE TABLE IF NOT EXISTS concord.recorded_copy (
  replication text NOT NULL,
  level bigint NOT NULL,
  PRIMARY KEY (replication, level))""",
]


def record(connection: Connection, replication: str, level: int, confirmed: int) -> None:
    """The record is on disk before the subscriber commits the copy. Records up to the confirmed level are deleted."""
    mine = f"replication = {literal(replication)}"
    with in_transaction(connection, "SET LOCAL synchronous_commit = on"):
        run(
            connection,
            f"DELETE FROM concord.recorded_copy WHERE {mine} AND level <= {confirmed}",
            "INSERT INTO concord.recorded_copy (replication, level)"
            f" VALUES ({literal(replication)}, {level}) ON CONFLICT DO NOTHING",
        )


def is_recorded(connection: Connection, replication: str, level: int) -> bool:
    """Was a copy taken at this level?"""
    mine = f"replication = {literal(replication)} AND level = {level}"
    return bool(rows(connection, f"SELECT FROM concord.recorded_copy WHERE {mine}"))
