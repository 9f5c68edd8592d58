"""Of rows that were proven equal, one site may know who inserted them. It tells the other one (rule 8).

Every later version of such a row remembers that it was inserted. A site that holds the row without a version would
take it for another insert of the same key.

A version that the site has agreed to forget is told as agreed, of a row and of a delete. A third site may not have
agreed yet (rule 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.initialize.key_range import is_key_mapped
from concord.databases.postgresql.rows.row_keys import key_text, later, listed
from concord.databases.postgresql.rows.shape import Shape

#: Versions told at once; bounds the memory of the driver.
BATCH = 5_000

#: A key as the conflict log shows it, and the version of its row as JSON.
Told = tuple[str, str]

_VERSION = (
    "key text, origin text, changed_at bigint, derived int, vector jsonb, deleted boolean, born boolean,"
    " agreed boolean"
)


@dataclass(frozen=True, slots=True)
class ToldVersions:
    """One table, and one way of the pair."""

    source: Connection
    source_shape: Shape
    target: Connection
    target_shape: Shape
    before: str  #: the position at the source before the rows were read: a version of a later row is not told

    def run(self) -> int:
        """How many versions the target has learned. None where the log of its edits is read: whose row it holds is
        known there from its own registration alone. None where the source keeps a key otherwise than others."""
        if self.target_shape.by_log or is_key_mapped(self.source_shape):
            return 0
        return sum(self._learn(told) for told in self._told())

    def _told(self) -> Iterator[list[Told]]:
        after = None
        while told := self._next(after):
            yield told
            after, _ = told[-1]

    def _next(self, after: str | None) -> list[Told]:
        shape = self.source_shape
        version = (
            f"jsonb_build_object('key', {key_text(shape, 'p')}, 'origin', p.origin, 'changed_at', p.changed_at,"
            " 'derived', p.derived, 'vector', p.vector, 'deleted', p.deleted, 'born', p.born, 'agreed', p.agreed)"
        )
        return rows(
            self.source,
            f"SELECT {key_text(shape, 'p')}, {version}::text FROM {shape.shadow.sql} p"
            " WHERE (p.agreed OR p.born AND NOT p.deleted) AND p.origin <> '' AND p.out_of_scope IS NULL"
            f" AND pg_visible_in_snapshot(p.position, {literal(self.before)}::pg_snapshot)"
            f" AND {later(shape, 'p', after)} ORDER BY {shape.keys_of('p')} LIMIT {BATCH}",
        )

    def _learn(self, told: Sequence[Told]) -> int:
        """Where there is no version: an edit that was made since has its own. Of a row that is there, or of a delete
        where there is none."""
        shape = self.target_shape
        absent = f"t.{shape.key[0].sql} IS NULL"
        versions = literal(f"[{', '.join(version for _, version in told)}]")
        return run(
            self.target,
            f"""
INSERT INTO {shape.shadow.sql} AS p ({shape.key_list}, origin, changed_at, derived, vector, deleted, born,
       agreed, received_from, position)
SELECT {shape.keys_of("w")}, v.origin, v.changed_at, v.derived, v.vector, v.deleted, v.born, v.agreed,
       {literal(self.source_shape.site)}, pg_current_xact_id()
  FROM {listed(shape, [key for key, _ in told])}
  JOIN jsonb_to_recordset({versions}::jsonb) v ({_VERSION}) ON v.key = {key_text(shape, "w")}
  LEFT JOIN {shape.table.sql} t ON {shape.same_key("t", "w")}
 WHERE CASE WHEN {absent} THEN v.deleted ELSE NOT v.deleted AND {shape.in_scope("t")} END
    ON CONFLICT ({shape.key_list}) DO UPDATE SET origin = excluded.origin, changed_at = excluded.changed_at,
       derived = excluded.derived, vector = excluded.vector, deleted = excluded.deleted, born = excluded.born,
       agreed = excluded.agreed, received_from = excluded.received_from, position = excluded.position
 WHERE p.origin = '' AND NOT p.deleted""",
        )
