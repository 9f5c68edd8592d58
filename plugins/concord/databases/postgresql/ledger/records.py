"""A site's records: conflicts, links, staging left behind. The controller reads them, and clears them away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg.rows import class_row, dict_row

from concord.databases.contract.status import DroppedIndex, InitializationAtSite, LinkAtSite, WaitingAtSite
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words
from concord.databases.postgresql.ledger import retention
from concord.databases.postgresql.rows.stage import drop_orphans, orphans
from concord.jobs.ledger import Overturn, as_stored
from concord.jobs.site import SiteAccess
from concord.jobs.stored import version_of
from concord.messages.errors import NotProvisioned

Kept = TypeVar("Kept", InitializationAtSite, DroppedIndex)

#: Rows handled at once: conflict rows carry two whole images.
BATCH = 500

#: No entry of Concord's has longer names; the repository has indexes of them.
_CONFLICTS = """
SELECT id, synchronization, link, transmission, table_name, key, type AS conflict_type, resolver, reason, winner_site,
       loser_site, winner_version, loser_version, winner_row, loser_row, withheld, decided_at,
       %(site)s AS site
  FROM concord.conflict
 WHERE link = %(link)s AND (transmission = %(transmission)s OR decided_at >= %(since)s)
   AND greatest(octet_length(id), octet_length(synchronization), octet_length(table_name)) <= 1000
 ORDER BY decided_at, id"""

_OVERTURNED = "SELECT conflict, person, version, although_changed, overturned_at FROM concord.overturn"

_OLD = "SELECT count(*) FROM concord.conflict WHERE decided_at < %(before)s"
_PURGE = f"SELECT concord.purge_conflicts(%(before)s, {BATCH})"

_LINKS = """
SELECT link, role, peer, updated_at, forced_at, (SELECT count(*) FROM jsonb_object_keys(initialized)) AS tables,
       history, floor
  FROM concord.link_state ORDER BY link"""


def initializations(site: SiteAccess) -> list[InitializationAtSite]:
    """The initializations whose progress this site keeps: those of which it is the configured target."""
    return _all_of(site, InitializationAtSite, "concord.initialization WHERE source_position IS NOT NULL")


def dropped_indexes(site: SiteAccess) -> list[DroppedIndex]:
    """Those of loads under way, and of loads that were killed and that nobody has begun again."""
    return _all_of(site, DroppedIndex, "concord.late_index")


def _all_of(site: SiteAccess, kind: type[Kept], place: str) -> list[Kept]:
    """Every row of a table, as the fields of `kind` name its columns; none where the site has no such table yet."""
    query = f"SELECT {', '.join(each.name for each in fields(kind))} FROM {place} ORDER BY 1, 2"
    try:
        with (
            connect(site.reader, "concord status") as connection,
            connection.cursor(row_factory=class_row(kind)) as cursor,
        ):
            return cursor.execute(query.encode()).fetchall()
    except psycopg.errors.UndefinedTable:
        return []
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error


def conflicts(
    site: SiteAccess, link: str, transmission: str, since: datetime
) -> Iterator[list[dict[str, Any]]]:
    """In batches: the conflicts that this transmission of the link decided at `site`, and all since `since`. Raises a
    ConcordError.

    The latter are what earlier transmissions decided whose task died before it could collect them.
    """
    asked = {"site": site.name, "link": link, "transmission": transmission, "since": since}
    try:
        with (
            connect(site.reader, "concord conflicts") as connection,
            connection.transaction(),
            connection.cursor("concord_conflicts", row_factory=dict_row) as cursor,
        ):
            cursor.execute(_CONFLICTS, asked)
            while batch := cursor.fetchmany(BATCH):
                yield [as_stored(each) for each in batch]
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error


_WAITING = """
SELECT synchronization, link, table_name, kind, count(*) AS count, min(since) AS since,
       (array_agg(reason ORDER BY since, key))[1] AS reason
  FROM concord.waiting GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""


def waiting_at(site: SiteAccess) -> list[WaitingAtSite]:
    """The rows that wait at the site, held or quarantined. Raises a ConcordError."""
    with connect(site.reader, "concord status") as connection:
        try:
            return connection.cursor(row_factory=class_row(WaitingAtSite)).execute(_WAITING).fetchall()
        except psycopg.errors.UndefinedTable:
            return []  # provisioned by an earlier version
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error


def overturns(site: SiteAccess, since: datetime) -> list[Overturn]:
    """Which losers were brought back at `site` since a moment: people ask for few. Raises a ConcordError."""
    with connect(site.reader, "concord conflicts") as connection:
        try:
            cursor = connection.cursor(row_factory=class_row(Overturn))
            found = cursor.execute(f"{_OVERTURNED} WHERE overturned_at >= %s".encode(), [since]).fetchall()
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error
    return [replace(each, version=version_of(each.version)) for each in found]


def purge_conflicts(site: SiteAccess, kept: timedelta, now: datetime, *, dry_run: bool) -> int:
    """Delete conflict rows that were decided longer ago than `kept`, or count them; how many.

    Raises NotProvisioned where the site was told to keep them for longer: it deletes none of those.
    """
    moment = {"before": now - kept}
    with connect(site.applier, "concord log purge") as connection:
        try:
            if (longer := retention.kept_at(connection)) > kept:
                raise NotProvisioned(
                    f"{site.name}: keeps conflicts for {retention.in_words(longer)}, longer than the"
                    f" configuration says ({retention.in_words(kept)}); run `provision`"
                )
            if dry_run:
                return _number(connection, _OLD, moment)
            purged, deleted = 0, BATCH
            while deleted == BATCH:
                deleted = _number(connection, _PURGE, moment)
                purged += deleted
            return purged
        except psycopg.errors.UndefinedColumn as error:
            raise NotProvisioned(
                f"{site.name}: was provisioned by an earlier version of Concord; run `provision`"
            ) from error
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error


def _number(connection: Connection, query: str, moment: dict[str, datetime]) -> int:
    found = connection.execute(query.encode(), moment).fetchone()
    return int(found[0]) if found else 0


def staging_tables(site: SiteAccess) -> list[str]:
    """Every staging table there is, of whatever transmission."""
    with connect(site.applier, "concord log purge") as connection:
        return orphans(connection, ())


def drop_staging(site: SiteAccess, names: Sequence[str]) -> None:
    """Drop staging tables that no run will miss."""
    with connect(site.applier, "concord log purge") as connection:
        drop_orphans(connection, names)


def links_at(site: SiteAccess) -> list[LinkAtSite]:
    """The site's record of every link it is an end of. Raises a ConcordError."""
    with connect(site.reader, "concord status") as connection:
        try:
            return connection.cursor(row_factory=class_row(LinkAtSite)).execute(_LINKS).fetchall()
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from None
