"""Children whose parent is gone give way: they are deleted, or end their reference by columns that become NULL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.capture.stamp import restamp
from concord.databases.postgresql.constraints import references, rule_identity
from concord.databases.postgresql.facts.connection import Connection, run
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.ledger import losers
from concord.databases.postgresql.rows.shape import Shape
from concord.databases.postgresql.write import too_large
from concord.jobs.link import LinkJob
from concord.tables.replication_set import TableName
from concord.versions.conflict import ConflictType


@dataclass(frozen=True, slots=True)
class GivingWay:
    """Such children of one foreign key; `listed` is the table of these orphans (`parents.list_orphans`)."""

    connection: Connection
    foreign_key: ForeignKey
    shapes: Mapping[TableName, Shape]
    listed: str
    columns: tuple[str, ...] | None  #: those that become NULL; None: the row is deleted

    @property
    def child(self) -> Shape:
        return self.shapes[self.foreign_key.child]

    @property
    def rows(self) -> str:
        """The children `t` as they are, each with its orphan `o`: to follow FROM."""
        return f"{self._children} JOIN {self.child.table.sql} t ON {self._same_child}"

    @property
    def _children(self) -> str:
        return f"(SELECT {references.key_of(self.child, 'o.key')}, o.vals FROM {self.listed} o) o"

    @property
    def _same_child(self) -> str:
        """It still refers by the same values."""
        still = references.still_refers(self.child, self.foreign_key, "t", "o.vals")
        return f"{self.child.same_key('t', 'o')} AND {still}"

    def lock(self, job: LinkJob) -> None:
        """Raises the refusal of a row that is too large for the ledger."""
        run(self.connection, f"SELECT count(*) FROM (SELECT 1 FROM {self.rows} FOR UPDATE OF t) x")
        too_large.refuse_loser(self.connection, job, self.child, self.rows)

    def log(self, job: LinkJob) -> int:
        """The children as they were; how many entries are new."""
        return losers.log(self.connection, job, ConflictType.FOREIGN_KEY, self._entries())

    def _entries(self) -> str:
        """Each against the version by which its parent went."""
        key, child, parent = self.foreign_key, self.child, self.shapes[self.foreign_key.parent]
        done = "the row is deleted" if self.columns is None else f"{', '.join(self.columns)} becomes NULL"
        reason = f"{key.name}: what it refers to in {key.parent} is gone; {done}"
        known, version = "", losers.nobody("w", deleted=True)
        if set(key.referenced) == set(parent.shadow.key):
            same = " AND ".join(
                f"w.{parent.shadow.key_column(name)}"
                f" = (o.vals::jsonb ->> {place})::{parent.table.column(name).type.sql}"
                for place, name in enumerate(key.referenced)
            )
            known = f" LEFT JOIN {parent.shadow.sql} w ON {same}"
            version = losers.present("w", "w", deleted=True)
        canonical = ", ".join(child.canonical_key("t"))
        by = losers.by_another_table(rule_identity.of_foreign_key(key, self.shapes))
        return (
            f"(SELECT {literal(child.name)} AS table_name, to_jsonb(ARRAY[{canonical}]::text[]) AS key,"
            f" 'foreign_key' AS resolver, {literal(reason)} AS reason, {by}, {version}, NULL::jsonb AS w_image,"
            f" {losers.present('l', 'p')}, {child.image('t')} AS l_image"
            f" FROM {self.rows} LEFT JOIN {child.shadow.sql} p ON {child.same_key('p', 't')}{known})"
        )

    def write(self) -> None:
        """Change the children and stamp them as edits of this site. Raises the refusal of the database."""
        table, gone = self.child.table, self.columns is None
        emptied = ", ".join(f"{table.column(name).sql} = NULL" for name in self.columns or ())
        change = f"DELETE FROM {table.sql} t USING" if gone else f"UPDATE {table.sql} t SET {emptied} FROM"
        key = references.key_of(self.child, "o.key")
        stamped = f"(SELECT {key}, {literal(gone)} AS concord_deleted FROM {self.listed} o)"
        run(
            self.connection,
            f"{change} {self._children} WHERE {self._same_child}",
            restamp(self.child.shadow, stamped),
        )
