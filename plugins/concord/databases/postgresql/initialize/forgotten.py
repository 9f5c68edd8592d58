"""A stale site forgets what the good one has forgotten, before their rows are compared (rule 10).

The stale site had sent these versions, so the good one has had them, or what replaced them. It holds none of the key
any more: all sites had agreed to forget it. Kept at one site alone, such a version would be in conflict with every
later edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.initialize.key_range import is_key_mapped
from concord.databases.postgresql.rows.row_keys import key_text, later, listed
from concord.databases.postgresql.rows.shape import Shape

#: Keys asked about at once; bounds the memory of the driver.
BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Forgetting:
    """One table at the stale site, and what the good one still knows of it."""

    connection: Connection
    shape: Shape
    good: Connection
    good_shape: Shape
    unsent: str  #: condition on the shadow row `p` of the stale site

    def run(self) -> int:
        """How many versions the stale site has forgotten. None of a table with marks, or with a row filter: what the
        other site does not know of may never have come there."""
        shapes = (self.shape, self.good_shape)
        if any(shape.marks is not None or shape.where or is_key_mapped(shape) for shape in shapes):
            return 0
        return sum(self._forget(gone) for keys in self._sent() if (gone := self._unknown(keys)))

    def _sent(self) -> Iterator[list[str]]:
        after = None
        while keys := self._next(after):
            yield keys
            after = keys[-1]

    def _next(self, after: str | None) -> list[str]:
        shape = self.shape
        return [
            key
            for (key,) in rows(
                self.connection,
                f"SELECT {key_text(shape, 'p')} FROM {shape.shadow.sql} p WHERE NOT coalesce({self.unsent}, false)"
                f" AND p.origin <> '' AND {later(shape, 'p', after)} ORDER BY {shape.keys_of('p')} LIMIT {BATCH}",
            )
        ]

    def _unknown(self, keys: Sequence[str]) -> list[str]:
        shape = self.good_shape
        return [
            key
            for (key,) in rows(
                self.good,
                f"SELECT {key_text(shape, 'w')} FROM {listed(shape, keys)} WHERE NOT EXISTS (SELECT 1"
                f" FROM {shape.shadow.sql} p WHERE {shape.same_key('p', 'w')} AND p.origin <> '' AND NOT p.agreed)"
                f" AND NOT EXISTS (SELECT 1 FROM concord.waiting q WHERE q.table_name = {literal(shape.name)}"
                f" AND q.key = {key_text(shape, 'w')}::jsonb)",
            )
        ]

    def _forget(self, keys: Sequence[str]) -> int:
        shape = self.shape
        return run(
            self.connection,
            f"DELETE FROM {shape.shadow.sql} p USING {listed(shape, keys)} WHERE {shape.same_key('p', 'w')}"
            f" AND NOT coalesce({self.unsent}, false) AND p.origin <> ''",
        )
