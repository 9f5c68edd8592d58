"""How staged rows become a snapshot's content, in one transaction that readers see whole or not at all (S4-005)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import psycopg

from concord.databases.contract.quoting import qualified
from concord.databases.contract.snapshot_ends import Written
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.own_schema import STAGING
from concord.databases.postgresql.facts.plans import BY_KEY
from concord.databases.postgresql.rows.stage import staging_name
from concord.databases.postgresql.snapshots.layout import Layout
from concord.messages.errors import ConstraintViolated

#: Readers are never kept waiting, and applications are never the ones to give way. Triggers of the destination stay
#: silent, as in a link's write (S0-17); capture does not, so that a snapshot may be the source of another.
SETTINGS = (
    "SET LOCAL session_replication_role = replica",
    "SET LOCAL concord.refreshing = 'on'",
    "SET LOCAL deadlock_timeout = '20ms'",
    "SET LOCAL lock_timeout = '500ms'",
    "SET LOCAL synchronous_commit = on",
)


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that executors wrote for a snapshot, and which task attempts are to be believed (F57)."""

    layout: Layout
    relation: str
    attempts: Sequence[int] = ()
    rows: int = 0

    @property
    def sql(self) -> str:
        return qualified(STAGING, self.relation)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.layout.staged

    def believing(self, attempts: Sequence[int], rows: int) -> StagedRows:
        """The same place, counting only what these task attempts wrote."""
        return replace(self, attempts=tuple(attempts), rows=rows)

    @property
    def believed(self) -> str:
        return f"attempt IN ({', '.join(map(str, self.attempts)) or 'NULL'})"

    def typed(self, chosen: str) -> str:
        """A subquery over the staged rows in the table's own types."""
        return f"(SELECT {self.layout.typed()} FROM {self.sql} WHERE {self.believed} AND {chosen})"

    @property
    def keys(self) -> str:
        """A subquery over the staged keys, and whether each one's row is gone."""
        columns = [column for column in self.layout.columns if column.name in self.layout.key]
        keys = ", ".join(f"{c.type.incoming(self.layout.alias(c))} AS {c.sql}" for c in columns)
        return f"(SELECT {keys}, gone AS concord_gone FROM {self.sql} WHERE {self.believed})"


def create(connection: Connection, layout: Layout, transmission: str) -> StagedRows:
    """An unlogged table: it need not survive a crash, since the run that made it would not either."""
    staged = StagedRows(layout, staging_name(transmission, 0))
    run(
        connection,
        f"CREATE UNLOGGED TABLE {staged.sql} ({layout.staging_columns}) WITH (autovacuum_enabled = false)",
    )
    return staged


def hold(connection: Connection, staged: StagedRows) -> None:
    """Keep the table and its guard as they are until the commit; readers go on, and see the content as it was.

    The guard keeps other writers out, and the fence other refreshes. Every lock that would keep writers out ends an
    autovacuum of the table, and lets none begin for as long as a refresh writes. This lock is the one that any
    write takes.
    """
    run(
        connection,
        f"LOCK TABLE {staged.layout.table.sql} IN ROW EXCLUSIVE MODE",
        f"ANALYZE {staged.sql}",
    )


def replace_content(connection: Connection, staged: StagedRows, site: str) -> Written:
    """Make the destination hold exactly the staged rows, as often as each; what it holds already is not rewritten.

    Rows are compared whole, by digest and number of copies, so that no key is needed. Rows that must go are taken
    out before anything is put in: no unique value is ever in the way of itself.
    """
    layout = staged.layout
    table, digest = layout.table.sql, layout.digest("t")
    copies = f"(SELECT {digest} AS concord_digest, count(*) AS concord_copies FROM {{}} t GROUP BY 1)"
    surplus = (
        "row_number() OVER (PARTITION BY concord_digest) > coalesce(concord_copies, 0) AS concord_surplus"
    )
    deleted = run(
        connection,
        f"""
DELETE FROM {table} d USING (
  SELECT concord_place, {surplus} FROM (SELECT t.ctid AS concord_place, {digest} AS concord_digest FROM {table} t) x
    LEFT JOIN {copies.format(staged.typed("true"))} s USING (concord_digest)) z
 WHERE z.concord_surplus AND d.ctid = z.concord_place""",
    )
    missing = f"""
INSERT INTO {table} ({layout.column_list}) OVERRIDING SYSTEM VALUE SELECT {layout.column_list} FROM (
  SELECT x.*, {surplus} FROM (SELECT t.*, {digest} AS concord_digest FROM {staged.typed("true")} t) x
    LEFT JOIN {copies.format(table)} s USING (concord_digest)) z WHERE z.concord_surplus"""
    inserted = _insert(connection, missing, site)
    return Written(inserted, 0, deleted, staged.rows - inserted)


def apply_changes(connection: Connection, staged: StagedRows, site: str) -> Written:
    """Bring the changed keys' rows to those of the source. An insert of a row that is there updates it, an update
    of one that is missing inserts it (S4-014). Each is counted by its effect."""
    layout = staged.layout
    run(connection, *BY_KEY)
    table, row = layout.table.sql, ", ".join(f"t.{column.sql}" for column in layout.columns)
    theirs = ", ".join(f"s.{column.sql}" for column in layout.columns)
    present = f"{table} t USING {staged.typed('NOT gone')} s WHERE {layout.same_key('t', 's')}"
    differs = f"record_image_ne(ROW({row}), ROW({theirs}))"
    deleted = run(
        connection,
        f"DELETE FROM {table} t USING {staged.keys} s WHERE s.concord_gone AND {layout.same_key('t', 's')}",
    )
    updated = run(connection, f"DELETE FROM {present} AND {differs}")
    absent = f"NOT EXISTS (SELECT 1 FROM {table} t WHERE {layout.same_key('t', 's')})"
    missing = (
        f"INSERT INTO {table} ({layout.column_list}) OVERRIDING SYSTEM VALUE"
        f" SELECT {theirs} FROM {staged.typed('NOT gone')} s WHERE {absent}"
    )
    inserted = _insert(connection, missing, site)
    return Written(inserted - updated, updated, deleted, staged.rows - inserted - deleted)


def _insert(connection: Connection, statement: str, site: str) -> int:
    """Raises ConstraintViolated where the destination forbids what the query returns."""
    try:
        return run(connection, statement)
    except (psycopg.errors.IntegrityError, psycopg.errors.DataError) as error:
        said = str(error).strip().splitlines()[0]
        raise ConstraintViolated(
            f"{site}: {said}: the destination forbids what the query returns; nothing was written"
        ) from error
