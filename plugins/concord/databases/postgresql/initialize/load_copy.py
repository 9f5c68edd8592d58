"""One key range on its way into an empty table: what the source's COPY sends and the target's takes in."""

from __future__ import annotations

from dataclasses import dataclass

from concord.databases.contract.initialization import KeyRange
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.shadow_table import WRITTEN_BY
from concord.databases.postgresql.initialize.key_range import KeyOrder, side
from concord.databases.postgresql.rows.shape import Shape

#: The columns of a version, beside its key and the target's own.
_BROUGHT = ("origin", "changed_at", "derived", "vector", "agreed")


@dataclass(frozen=True, slots=True)
class LoadCopy:
    """The statements of one table. Both sites keep it alike: nothing is mapped on the way.

    A second form of `rules.initialization_rule.decide`, where the target holds nothing.
    """

    source: Shape
    target: Shape
    order: KeyOrder

    @property
    def form(self) -> str:
        """Binary where every server reads what another one writes; else as pg_dump does, whose texts are exact."""
        columns = (*self.source.columns, *self.target.columns)
        return "binary" if all(column.type.is_alike_in_binary for column in columns) else "text"

    def send_rows(self, within: KeyRange) -> str:
        columns = ", ".join(f"t.{column.sql}" for column in self.source.columns)
        found = f"SELECT {columns} FROM {self.source.table.sql} t WHERE {self._range(within, 't')}"
        return self._sent(f"{found} AND {self.source.in_scope('t')}")

    @property
    def take_rows(self) -> str:
        columns = ", ".join(column.sql for column in self.target.columns)
        return self._taken(self.target.table.sql, columns)

    def send_versions(self, within: KeyRange, transaction: str) -> str:
        """Of rows and of what was deleted, as the target's `transaction` is to write them: from this site, at that
        position. A row that has left the filter is no row, and was none at an empty table."""
        shape = self.source
        gone = f"t.{shape.key[0].sql} IS NULL"
        keys = ", ".join(side(shape, column) for column in shape.key)
        brought = ", ".join(f"p.{name}" for name in _BROUGHT)
        more = f"{gone}, p.born, {literal(shape.site)}::text, {literal(transaction)}::xid8"
        shared = f"CASE WHEN {gone} THEN p.out_of_scope IS NULL ELSE {shape.in_scope('t')} END"
        return self._sent(
            f"SELECT {keys}, {brought}, {more} FROM {shape.shadow.sql} p"
            f" LEFT JOIN {shape.table.sql} t ON {shape.same_key('t', 'p')}"
            f" WHERE {self._range(within, 'p')} AND p.origin <> ''"
            f" AND NOT {shape.left_elsewhere('p')} AND {shared}"
        )

    @property
    def take_versions(self) -> str:
        more = ", ".join((*_BROUGHT, "deleted", "born", "received_from", "position"))
        return self._taken(self.target.shadow.sql, f"{self.target.key_list}, {more}")

    @property
    def attributing(self) -> str:
        """The versions that this transaction has written belong to the rows that it has written."""
        shape = self.target
        return (
            f"UPDATE {shape.shadow.sql} p SET {WRITTEN_BY} = t.xmin FROM {shape.table.sql} t"
            f" WHERE {shape.same_key('t', 'p')} AND p.position = pg_current_xact_id()"
        )

    def clashing(self, within: KeyRange) -> str:
        """Query: a row that this transaction has written under a key of which somebody here has a version: its users
        had inserted and deleted it."""
        shape = self.target
        ours = "t.xmin = pg_current_xact_id()::xid"
        return (
            f"SELECT 1 FROM {shape.shadow.sql} p WHERE {self.order.condition(within, shape, 'p')}"
            f" AND p.position <> pg_current_xact_id()"
            f" AND EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')} AND {ours}) LIMIT 1"
        )

    def deleted(self, within: KeyRange) -> str:
        """Query: how many of the versions that this transaction has written are of deleted rows."""
        shape = self.target
        return (
            f"SELECT count(*) FROM {shape.shadow.sql} p WHERE {self.order.condition(within, shape, 'p')}"
            " AND p.deleted AND p.position = pg_current_xact_id()"
        )

    def _range(self, within: KeyRange, row: str) -> str:
        return self.order.condition(within, self.source, row)

    def _sent(self, query: str) -> str:
        return f"COPY ({query}) TO STDOUT (FORMAT {self.form})"

    def _taken(self, table: str, columns: str) -> str:
        return f"COPY {table} ({columns}) FROM STDIN (FORMAT {self.form})"
