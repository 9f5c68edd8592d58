"""How a replication stands, for people: its level at the subscriber, and the log that its publisher keeps for it."""

from __future__ import annotations

from typing import Any

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.replication_standing import KeptLog, ReplayedLevel
from concord.databases.postgresql.facts.connection import connect, in_our_words, rows
from concord.databases.postgresql.log import slot
from concord.databases.postgresql.log.first_waiting import Waiting, first_waiting, watched_log
from concord.databases.postgresql.log.frames import lsn
from concord.databases.postgresql.operations import kept
from concord.jobs.replication import ReplicationJob
from concord.jobs.site import Credentials


def level(job: ReplicationJob) -> ReplayedLevel | None:
    """None where it was never initialized. Raises a ConcordError."""
    found = _asked(
        job.target.reader,
        job.target.name,
        "SELECT level, level_at, greatest(level_at, settled_at), entries, conversions, largest,"
        " CASE WHEN NOT valid THEN reason END, reinitialize, ARRAY("
        "SELECT DISTINCT t FROM concord.skipped s, unnest(s.tables) t WHERE s.replication = r.replication"
        " AND s.mended_at IS NULL ORDER BY t) FROM concord.replay r"
        f" WHERE replication = {literal(job.synchronization)} AND level IS NOT NULL",
    )
    if not found:
        return None
    [(number, committed_at, current_at, entries, conversions, largest, reason, anew, differing)] = found
    counts = (entries, conversions, largest)
    return ReplayedLevel(
        int(number), lsn(int(number)), committed_at, current_at, *counts, reason, anew, tuple(differing)
    )


def kept_log(job: ReplicationJob, since: int) -> KeptLog | None:
    """None where the slot is gone, or no operations are kept. Raises a ConcordError."""
    return _operations(job, since) if job.replication.by_triggers else _log(job, since)


def _operations(job: ReplicationJob, since: int) -> KeptLog | None:
    found = _asked(job.source.reader, job.source.name, kept.standing(job.replication.name, since))
    if not found:
        return None
    behind, size, now, waiting_since = found[0]
    waits = waiting_since is not None
    return KeptLog(behind, size, "triggers", is_read=False, now=now, waits=waits, waiting_since=waiting_since)


def _log(job: ReplicationJob, since: int) -> KeptLog | None:
    name = slot.slot_name(job.replication.name, job.direction)
    found = _asked(
        job.source.reader,
        job.source.name,
        f"SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '{lsn(since)}')::bigint,"
        " pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn)::bigint, wal_status, active, now()"
        f" FROM pg_replication_slots WHERE slot_name = {literal(name)} AND database = current_database()",
    )
    if not found:
        return None
    behind, kept, status, is_read, now = found[0]
    if status == "lost":
        return KeptLog(behind, kept, status, is_read=False, now=now, waits=True)
    try:
        waiting = None if is_read else first_waiting(job.reads_log, watched_log(job), since)
    except psycopg.Error:  # a run has begun to read it
        is_read, waiting = True, None
    waits = not _is_caught_up(job, name) if is_read else waiting is not None
    return KeptLog(behind, kept, status, is_read, now, waits, _committed_at(waiting))


def _committed_at(waiting: Waiting | None) -> Any:
    return None if waiting is None else waiting.committed_at


def _is_caught_up(job: ReplicationJob, name: str) -> bool:
    """Has the run that reads the log been sent all of it? Its own login may ask."""
    found = _asked(
        job.reads_log,
        job.source.name,
        "SELECT e.flushed <= s.sent_lsn FROM (SELECT pg_current_wal_flush_lsn() AS flushed) e,"
        " pg_stat_replication s JOIN pg_replication_slots p ON p.active_pid = s.pid"
        f" WHERE p.slot_name = {literal(name)}",
    )
    return found == [(True,)]


def _asked(login: Credentials, site: str, query: str) -> list[tuple[Any, ...]]:
    try:
        with connect(login, "concord status") as connection:
            return rows(connection, query)
    except psycopg.errors.UndefinedTable:  # not provisioned since it has replications
        return []
    except psycopg.Error as error:
        raise in_our_words(error, site) from error
