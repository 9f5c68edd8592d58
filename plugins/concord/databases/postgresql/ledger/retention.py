"""How long a site keeps the ledger: the applier deletes no entry, a function of the site's own deletes what is old."""

from __future__ import annotations

from datetime import timedelta

from concord.databases.postgresql.facts.connection import Connection, rows

#: In seconds: a day may be an hour longer where a session has another time zone.
STATEMENTS = [
    "ALTER TABLE concord.site ADD COLUMN IF NOT EXISTS conflicts_kept interval NOT NULL DEFAULT '2592000 seconds'",
    # Whoever may call it deletes nothing that is not older than what the site keeps, whatever moment he names.
    """
CREATE OR REPLACE FUNCTION concord.purge_conflicts(before timestamptz, most integer) RETURNS bigint LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
WITH kept AS MATERIALIZED (SELECT least(before, now() - s.conflicts_kept) AS since FROM concord.site s),
undone AS (DELETE FROM concord.overturn o USING kept k WHERE o.overturned_at < k.since),
gone AS (DELETE FROM concord.conflict WHERE id IN
           (SELECT c.id FROM concord.conflict c, kept k WHERE c.decided_at < k.since LIMIT most) RETURNING 1)
SELECT count(*) FROM gone $$""",
    "REVOKE ALL ON FUNCTION concord.purge_conflicts(timestamptz, integer) FROM PUBLIC",
]


def keep(kept: timedelta) -> str:
    """The statement by which a site is told."""
    interval = f"make_interval(secs => {kept.total_seconds()})"
    return f"UPDATE concord.site SET conflicts_kept = {interval} WHERE conflicts_kept <> {interval}"


def in_words(kept: timedelta) -> str:
    """`30 days`, `0.5 days`."""
    return f"{kept / timedelta(days=1):g} days"


def kept_at(connection: Connection) -> timedelta:
    """For how long the site keeps them. Raises psycopg's UndefinedColumn at a site of an earlier version."""
    [(found,)] = rows(connection, "SELECT conflicts_kept FROM concord.site")
    assert isinstance(found, timedelta), "an interval without months is one"
    return found
