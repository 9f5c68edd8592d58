"""The table of the rows that wait at a site, and what is counted there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import psycopg
from psycopg.rows import class_row

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, connect, in_our_words, rows, run
from concord.jobs import stored
from concord.jobs.site import SiteAccess
from concord.jobs.waiting import PERSON, Unconfigured

STATEMENTS = (
    """
CREATE TABLE IF NOT EXISTS concord.waiting (
  link text,
  table_name text,
  key jsonb,
  synchronization text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('held', 'quarantined')),
  version jsonb NOT NULL,
  row_image jsonb NOT NULL,
  structure text NOT NULL,
  against jsonb,
  conflict_type text,
  resolver text,
  reason text NOT NULL,
  transmission text NOT NULL,
  since timestamptz NOT NULL DEFAULT now(),
  tried_at timestamptz NOT NULL DEFAULT now(),
  tries integer NOT NULL DEFAULT 1,
  PRIMARY KEY (link, table_name, key))""",
)


def counted(connection: Connection, link: str) -> dict[str, int]:
    """The tables of which rows wait at this site for the link; how many of each are to be tried again."""
    return dict(rows(connection, counting(link)))


def counting(link: str) -> str:
    """The query that tells."""
    return (
        "SELECT table_name, count(*) FILTER (WHERE kind = 'quarantined') FROM concord.waiting"
        f" WHERE link = {literal(link)} GROUP BY 1"
    )


def others(site: SiteAccess, links: Sequence[str]) -> list[Unconfigured]:
    """The rows that wait at the site for links other than these. Raises a ConcordError."""
    known = ", ".join(map(literal, links))
    query = (
        f"SELECT {literal(site.name)} AS site, link, table_name, key, kind, reason, version, row_image"
        f" FROM concord.waiting WHERE NOT link = ANY (ARRAY[{known}]::text[]) ORDER BY link, table_name, key"
    )
    with connect(site.reader, "concord waiting") as connection:
        try:
            found = connection.cursor(row_factory=class_row(Unconfigured)).execute(query.encode()).fetchall()
        except psycopg.errors.UndefinedTable:
            return []  # not provisioned yet, or by an earlier version
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error
    return [
        replace(
            each,
            key=[part or "" for part in stored.key_of(each.key)],
            version=stored.version_of(each.version),
            row_image=stored.image_of(each.row_image) or {},
        )
        for each in found
    ]


#: A row that nobody has ever changed, as the conflict log writes its version.
_NO_VERSION = literal('{"origin": "", "changed_at": 0, "derived": 0, "vector": {}, "deleted": false}')


def drop(site: SiteAccess, row: Unconfigured, person: str) -> None:
    """Move the row to the conflict log, as the loser to what is present. Raises a ConcordError."""
    reason = literal(f"{person} let go of it: ") + " || w.reason"
    this = (
        f"w.link = {literal(row.link)} AND w.table_name = {literal(row.table_name)}"
        f" AND w.key = {literal(json.dumps(list(row.key)))}::jsonb"
    )
    with connect(site.applier, "concord waiting") as connection:
        try:
            with connection.transaction():
                run(
                    connection,
                    f"""
INSERT INTO concord.conflict (id, synchronization, link, transmission, table_name, key, type, resolver, reason,
       winner_site, loser_site, winner_version, loser_version, winner_row, loser_row)
SELECT encode(sha256(convert_to(concat_ws('/', link, table_name, key, version), 'UTF8')), 'hex'), synchronization,
       link, transmission, table_name, key, 'dropped', {literal(PERSON)}, {reason}, {literal(site.name)},
       split_part(version ->> 'origin', '#', 1), coalesce(against, {_NO_VERSION}), version, NULL, row_image
  FROM concord.waiting w WHERE {this} ON CONFLICT (id) DO NOTHING""",
                    f"DELETE FROM concord.waiting w WHERE {this}",
                )
        except psycopg.Error as error:
            raise in_our_words(error, site.name) from error
