"""Let a site forget links that have left the configuration, so that no tombstone waits for them any more (F34)."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, rows, run
from concord.jobs.site import Credentials


def remembered(installer: Credentials, site: str) -> list[tuple[str, str]]:
    """Every link that the site remembers, or was about to when its initialization was given up. With it the site at
    its other end; none where Concord is not."""
    with connect(installer, "concord forget") as connection:
        try:
            if not rows(connection, "SELECT 1 WHERE to_regclass('concord.link_state') IS NOT NULL"):
                return []
            begun = ""
            if _has_initializations(connection):
                begun = " UNION SELECT synchronization || '/forward', peer FROM concord.initialization"
            return rows(connection, f"SELECT link, peer FROM concord.link_state{begun} ORDER BY link")
        except psycopg.Error as error:
            raise in_our_words(error, site) from error


def forget(installer: Credentials, site: str, links: Sequence[str]) -> None:
    """Remove what the site remembers of the links, epochs included: a run that still sleeps commits nothing.

    An initialization that never ended would keep others of its tables waiting, and be taken for a listener.
    """
    listed = ", ".join(literal(link) for link in links)
    synchronizations = ", ".join(sorted({literal(link.rpartition("/")[0]) for link in links}))
    with connect(installer, "concord forget") as connection:
        try:
            with connection.transaction():
                run(connection, f"DELETE FROM concord.synchronization WHERE name IN ({synchronizations})")
                run(connection, f"DELETE FROM concord.link_state WHERE link IN ({listed})")
                if _has_initializations(connection):
                    run(
                        connection,
                        f"DELETE FROM concord.initialization WHERE synchronization IN ({synchronizations})",
                    )
        except psycopg.Error as error:
            raise in_our_words(error, site) from error


def _has_initializations(connection: Connection) -> bool:
    """A site of an older Concord may have none."""
    return bool(rows(connection, "SELECT 1 WHERE to_regclass('concord.initialization') IS NOT NULL"))
