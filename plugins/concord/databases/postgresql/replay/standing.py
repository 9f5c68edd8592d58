"""How a replication stands, for people: its level at the subscriber, and the log that its publisher keeps for it."""

from __future__ import annotations

from typing import Any

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.replication_ends import KeptLog, ReplayedLevel
from concord.databases.postgresql.facts.connection import connect, in_our_words, rows
from concord.databases.postgresql.log import slot
from concord.databases.postgresql.log.frames import lsn
from concord.databases.postgresql.operations import kept
from concord.jobs.replication import replication_name
from concord.jobs.site import SiteAccess


def level(subscriber: SiteAccess, replication: str) -> ReplayedLevel | None:
    """None where it was never initialized. Raises a ConcordError."""
    found = _asked(
        subscriber,
        "SELECT level, level_at, entries, conversions, CASE WHEN NOT valid THEN reason END, ARRAY("
        "SELECT DISTINCT t FROM concord.skipped s, unnest(s.tables) t WHERE s.replication = r.replication"
        " AND s.mended_at IS NULL ORDER BY t) FROM concord.replay r"
        f" WHERE replication = {literal(replication_name(replication))} AND level IS NOT NULL",
    )
    if not found:
        return None
    number, at, entries, conversions, reason, differing = found[0]
    known = (at, entries, conversions, reason, tuple(differing))
    return ReplayedLevel(int(number), lsn(int(number)), *known)


def kept_log(publisher: SiteAccess, replication: str, since: int) -> KeptLog | None:
    """None where the slot is gone, and no operations are kept. Raises a ConcordError."""
    if operations := _asked(publisher, kept.standing(replication, since)):
        [(behind, kept_bytes)] = operations
        return KeptLog(behind, kept_bytes, "triggers", is_read=False)
    found = _asked(
        publisher,
        f"SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '{lsn(since)}')::bigint,"
        " pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn)::bigint, wal_status, active"
        f" FROM pg_replication_slots WHERE slot_name = {literal(slot.slot_name(replication))}"
        " AND database = current_database()",
    )
    return KeptLog(*found[0]) if found else None


def _asked(site: SiteAccess, query: str) -> list[tuple[Any, ...]]:
    try:
        with connect(site.reader, "concord status") as connection:
            return rows(connection, query)
    except psycopg.errors.UndefinedTable:  # not provisioned since it has replications
        return []
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error
