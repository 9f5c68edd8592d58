"""Of rows that were proven equal, one site may know who inserted them. It tells the other one (rule 8).

A later version of such a row is still one of a row that was inserted here, as far as versions say. A site that holds
the row without any version would take it for another insert of the same key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, one, rows, run
from concord.databases.postgresql.initialize.key_range import is_key_mapped
from concord.databases.postgresql.rows.row_keys import key_text, listed
from concord.databases.postgresql.rows.shape import Shape

#: Versions told at once; bounds the memory of the driver.
BATCH = 5_000

#: Beside its key: a version, and the position at which it stands.
Told = tuple[str, str, int, int, str]

_VERSION = "key text, origin text, changed_at bigint, derived int, vector jsonb"


def now(connection: Connection) -> str:
    """The moment before the rows are read."""
    return str(one(connection, "SELECT pg_current_snapshot()::text")[0])


@dataclass(frozen=True, slots=True)
class ToldInserts:
    """One table, and one way of the pair."""

    source: Connection
    source_shape: Shape
    target: Connection
    target_shape: Shape
    since: str  #: the moment at the source: what it learned later may be of a row that was not yet read

    def run(self) -> int:
        """How many versions the target has learned. None where the log of its edits is read: whose row it holds is
        known there from its own registration alone. None where keys differ by site."""
        if self.target_shape.by_log or is_key_mapped(self.source_shape):
            return 0
        return sum(self._learn(told) for told in self._told())

    def _told(self) -> Iterator[list[Told]]:
        after = None
        while told := self._next(after):
            yield told
            after = told[-1][0]

    def _next(self, after: str | None) -> list[Told]:
        shape, keys = self.source_shape, self.source_shape.keys_of("p")
        of = f"SELECT {shape.keys_of('w')} FROM {listed(shape, [after])}" if after is not None else ""
        return rows(
            self.source,
            f"SELECT {key_text(shape, 'p')}, p.origin, p.changed_at, p.derived, p.vector::text"
            f" FROM {shape.shadow.sql} p WHERE p.born AND NOT p.deleted AND NOT p.agreed AND p.origin <> ''"
            f" AND p.out_of_scope IS NULL AND pg_visible_in_snapshot(p.position, {literal(self.since)}::pg_snapshot)"
            f"{f' AND ({keys}) > ({of})' if of else ''} ORDER BY {keys} LIMIT {BATCH}",
        )

    def _learn(self, told: Sequence[Told]) -> int:
        """Where the row is there and has no version: an edit that was made since has its own."""
        shape = self.target_shape
        names = ("key", "origin", "changed_at", "derived", "vector")
        sent = [dict(zip(names, (*each[:4], json.loads(each[4])), strict=True)) for each in told]
        return run(
            self.target,
            f"""
INSERT INTO {shape.shadow.sql} AS p ({shape.key_list}, origin, changed_at, derived, vector, deleted, born,
       received_from, position)
SELECT {shape.keys_of("w")}, v.origin, v.changed_at, v.derived, v.vector, false, true,
       {literal(self.source_shape.site)}, pg_current_xact_id()
  FROM {listed(shape, [each[0] for each in told])}
  JOIN jsonb_to_recordset({literal(json.dumps(sent, ensure_ascii=False))}::jsonb) v ({_VERSION})
    ON v.key = {key_text(shape, "w")}
  JOIN {shape.table.sql} t ON {shape.same_key("t", "w")} AND {shape.in_scope("t")}
    ON CONFLICT ({shape.key_list}) DO UPDATE SET origin = excluded.origin, changed_at = excluded.changed_at,
       derived = excluded.derived, vector = excluded.vector, deleted = false, born = true,
       received_from = excluded.received_from, position = excluded.position
 WHERE p.origin = '' AND NOT p.deleted""",
        )
