"""Compensations that were taken, and tombstones of long ago: a queued replication's publisher need not keep them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts import row_version
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.queued import compensation

#: How long the version of a deleted row is kept. Subscribers forget it too, in the order of the publisher's log.
TOMBSTONES_KEPT = timedelta(days=30)


def forget(connection: Connection, replication: str, shadows: Sequence[str]) -> None:
    """Nothing waits in the log of this replication, and none of its runs is on.

    A subscriber that writes such a row again names a tombstone which its publisher no longer has: that is no conflict.
    """
    age_us = int(TOMBSTONES_KEPT.total_seconds()) * 1_000_000
    old = f"deleted AND changed_at < {row_version.NOW} - {age_us}"
    run(
        connection,
        f"DELETE FROM {compensation.SQL} WHERE replication = {literal(replication)}",
        *(f"DELETE FROM {shadow} WHERE {old}" for shadow in shadows),
    )
