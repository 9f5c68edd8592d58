"""Edits of which no log tells any more: the rows themselves show who wrote them last (S1-32 b).

That holds in the database whose log was read, and wherever its files went: to a standby, or back from a backup. Rows
of a dump were all written when it was restored, and show nothing.
"""

from __future__ import annotations

from concord.databases.contract.quoting import quote
from concord.databases.postgresql.capture import stamp
from concord.databases.postgresql.capture.shadow_table import WITH_WRITER, WRITTEN_BY, Shadow

_NOW = "(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS now) n"


def whole(writer: str) -> str:
    """SQL: the id of a row's writer, of which the row has 32 bits. None that is younger than `n.now` says is taken for
    an older one."""
    return f"(n.now - ((n.now - {writer}::text::bigint) & 4294967295))"


def untold(shadow: Shadow, since: int) -> str:
    """Statement: a row without its version that a transaction from `since` on may have written becomes an edit of now.

    A row that is gone, while its version says that it stands, becomes a delete. One that had no version leaves no
    trace.
    """
    own = ", ".join(f"t.{quote(name)} AS {shadow.key_column(name)}" for name in shadow.key)
    known = ", ".join(f"p.{shadow.key_column(name)}" for name in shadow.key)
    keys = ", ".join(f"x.{shadow.key_column(name)}" for name in shadow.key)
    same = " AND ".join(f"t.{quote(name)} = p.{shadow.key_column(name)}" for name in shadow.key)
    selected = f"""
    SELECT {keys}, {stamp.stamp()}, x.concord_gone, false, NULL, pg_current_xact_id(), x.concord_writer
      FROM (SELECT {own}, false AS concord_gone, t.xmin AS concord_writer
              FROM {shadow.table.sql} t CROSS JOIN {_NOW} LEFT JOIN {shadow.sql} p ON {same}
             WHERE {whole("t.xmin")} >= {since} AND p.{WRITTEN_BY} IS DISTINCT FROM t.xmin
            UNION ALL
            SELECT {known}, true, NULL FROM {shadow.sql} p
             WHERE p.origin <> '' AND NOT p.deleted AND NOT EXISTS (SELECT FROM {shadow.table.sql} t WHERE {same})) x
     CROSS JOIN {stamp.SITE}"""
    return stamp.upsert(shadow, selected, "excluded.deleted", base=WITH_WRITER).rstrip(";")
