"""The copies that a publisher has given while its log was kept already.

The log of such a copy begins before the copy, as that of a publisher does which was restored to before it. By the
record of the copy the two are told apart.
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
    """It is on disk before the subscriber commits the copy. Those up to the confirmed level are no longer needed."""
    mine = f"replication = {literal(replication)}"
    with in_transaction(connection, "SET LOCAL synchronous_commit = on"):
        run(
            connection,
            f"DELETE FROM concord.recorded_copy WHERE {mine} AND level <= {confirmed}",
            "INSERT INTO concord.recorded_copy (replication, level)"
            f" VALUES ({literal(replication)}, {level}) ON CONFLICT DO NOTHING",
        )


def is_recorded(connection: Connection, replication: str, level: int) -> bool:
    """Was a copy given at this level?"""
    mine = f"replication = {literal(replication)} AND level = {level}"
    return bool(rows(connection, f"SELECT FROM concord.recorded_copy WHERE {mine}"))
