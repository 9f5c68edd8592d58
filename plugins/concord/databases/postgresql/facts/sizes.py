"""How large tables are, without reading them: the cost of a copy depends on it (S0-05)."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from concord.databases.contract.quoting import literal, qualified
from concord.databases.contract.status import TableSize
from concord.databases.postgresql.facts.connection import connect, in_our_words, one, rows
from concord.jobs.site import SiteAccess
from concord.values.identifier import TableName

#: Rows for each page when the table was last analyzed, times the pages that it has now: as PostgreSQL's planner does.
_SIZE = """
SELECT CASE WHEN c.relpages > 0 AND c.reltuples >= 0
            THEN round(c.reltuples::numeric / c.relpages
                       * (pg_relation_size(c.oid) / current_setting('block_size')::integer))::bigint END,
       pg_table_size(c.oid)
  FROM pg_class c WHERE c.oid = to_regclass({table})"""


def sizes(site: SiteAccess, tables: Iterable[TableName]) -> list[TableSize]:
    """Of those that exist. One that was never analyzed is counted. Raises a ConcordError."""
    found = []
    try:
        with connect(site.reader, "concord status") as connection:
            for table in tables:
                relation = qualified(table.schema_name, table.name)
                for estimated, size in rows(connection, _SIZE.format(table=literal(relation))):
                    count = estimated
                    if count is None:
                        (count,) = one(connection, f"SELECT count(*) FROM ONLY {relation}")
                    found.append(TableSize(str(table), int(count), int(size)))
    except psycopg.Error as error:
        raise in_our_words(error, site.name) from error
    return found
