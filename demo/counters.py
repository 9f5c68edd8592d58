"""How many rows each site's database has written so far, by its own counters."""

import time
from collections.abc import Mapping

from demo.sites import Connection, Site, Sites

#: Site and table → rows inserted, updated and deleted since the server started.
Written = Mapping[tuple[str, str], tuple[int, int, int]]

_SECONDS_FOR_SESSIONS_TO_END = 10.0

#: Not the control rows, of which every run writes a fixed number: heartbeat, epoch, link state.
_QUERY = """
SELECT schemaname || '.' || relname, n_tup_ins, n_tup_upd, n_tup_del
  FROM pg_stat_user_tables
 WHERE schemaname IN ('public', 'concord_staging')
    OR schemaname = 'concord' AND relname NOT IN ('site', 'synchronization', 'link_state')"""


def written(sites: Sites) -> Written:
    """The counters of every replicated, shadow, conflict and staging table at both sites."""
    return {
        (name, table): (inserted, updated, deleted)
        for name, site in sites.items()
        for table, inserted, updated, deleted in _counters(site)
    }


def difference(before: Written, after: Written) -> dict[tuple[str, str], int]:
    """Rows written between two looks, where there are any."""
    rows = {name: sum(counts) - sum(before.get(name, (0, 0, 0))) for name, counts in after.items()}
    return {name: count for name, count in rows.items() if count}


def _counters(site: Site) -> list[tuple[str, int, int, int]]:
    with site.connect_as_superuser() as connection:
        _wait_for_others(connection)
        return connection.execute(_QUERY.encode()).fetchall()


def _wait_for_others(connection: Connection) -> None:
    """A session hands its counts in when it ends, at the latest; ours would keep an old view of them."""
    connection.execute("SET stats_fetch_consistency = 'none'")
    others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    others += " AND backend_type = 'client backend'"
    deadline = time.monotonic() + _SECONDS_FOR_SESSIONS_TO_END
    while connection.execute(others.encode()).fetchone():
        if time.monotonic() > deadline:
            raise TimeoutError("a session of the run is still connected, so its counts are not complete")
        time.sleep(0.05)
    connection.execute("SELECT pg_stat_force_next_flush()")
