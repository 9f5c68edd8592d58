"""The log that a site keeps for capture, for people: how much of it, and whether it still tells (S1-32 b)."""

from __future__ import annotations

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.contract.status import LogAtSite
from concord.databases.postgresql.facts.connection import connect, in_our_words, rows
from concord.databases.postgresql.log import capture_slot
from concord.jobs.site import SiteAccess


def kept_log(site: SiteAccess) -> LogAtSite | None:
    """None where the site's changes are not read from its log, or not yet. Raises a ConcordError."""
    if site.log_reader is None:
        return None
    try:
        with connect(site.reader, "concord status") as connection:
            if (level := capture_slot.level(connection)) is None:
                return None
            found = rows(
                connection,
                "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), restart_lsn)::bigint, wal_status"
                f" FROM pg_replication_slots WHERE slot_name = {literal(capture_slot.name_at(connection))}",
            )
            kept, state = found[0] if found else (None, None)
            return LogAtSite(kept, state, capture_slot.standing(connection, level))
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error
