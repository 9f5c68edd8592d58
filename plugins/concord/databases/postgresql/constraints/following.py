"""Children follow a parent whose values were changed at another site: their references get the values that it has now
(F46). The parent is known by its replication key, so nothing is guessed.

It is what ON UPDATE CASCADE would have done, had it seen the child.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.capture.stamp import restamp
from concord.databases.postgresql.constraints import parents, references, rule_identity
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.ledger import losers
from concord.databases.postgresql.rows.shape import Shape
from concord.jobs.link import LinkJob
from concord.versions.conflict import ConflictType


@dataclass(frozen=True, slots=True)
class Following:
    """The children of one foreign key that follow; `listed` is the table of these orphans (`parents.list_orphans`)."""

    connection: Connection
    foreign_key: ForeignKey
    child: Shape
    parent: Shape
    listed: str

    @property
    def rows(self) -> str:
        """The children `t` as they are, each with its parent `x`: to follow FROM."""
        return (
            f"{self._children} JOIN {self.child.table.sql} t ON {self._same_child}"
            f" JOIN {self._parents} ON x.concord_row = o.concord_row"
        )

    @property
    def _children(self) -> str:
        key = references.key_of(self.child, "o.key")
        return f"(SELECT {key}, o.key AS concord_row, o.vals FROM {self.listed} o) o"

    @property
    def _same_child(self) -> str:
        """It still refers by the same values."""
        still = references.still_refers(self.child, self.foreign_key, "t", "o.vals")
        return f"{self.child.same_key('t', 'o')} AND {still}"

    @property
    def _parents(self) -> str:
        key = references.key_of(self.parent, "o.parent")
        listed = f"(SELECT {key}, o.key AS concord_row FROM {self.listed} o) k"
        return (
            f"(SELECT y.*, k.concord_row FROM {listed}"
            f" JOIN {self.parent.table.sql} y ON {self.parent.same_key('y', 'k')}) x"
        )

    def lock(self) -> None:
        """The children, and their parents as PostgreSQL's own check would."""
        key = references.key_of(self.parent, "o.parent")
        listed = f"(SELECT {key} FROM {self.listed} o) k JOIN {self.parent.table.sql} y"
        for locked in (
            f"{listed} ON {self.parent.same_key('y', 'k')} FOR KEY SHARE OF y",
            f"{self._children} JOIN {self.child.table.sql} t ON {self._same_child} FOR UPDATE OF t",
        ):
            run(self.connection, f"SELECT count(*) FROM (SELECT 1 FROM {locked}) z")

    def log(self, job: LinkJob, shapes: Collection[Shape]) -> int:
        """The children as they were, each against its parent; how many entries are new."""
        key, child, parent = self.foreign_key, self.child, self.parent
        rule = rule_identity.of_foreign_key(key, {shape.table.name: shape for shape in shapes})
        reason = f"{key.name}: {key.parent} has another value now; {', '.join(key.columns)} follows it"
        same = " AND ".join(f"w.{parent.shadow.key_column(c.name)} = x.{c.sql}" for c in parent.key)
        return losers.log(
            self.connection,
            job,
            ConflictType.FOREIGN_KEY,
            f"(SELECT {literal(child.name)} AS table_name,"
            f" to_jsonb(ARRAY[{', '.join(child.canonical_key('t'))}]::text[]) AS key, 'foreign_key' AS resolver,"
            f" {literal(reason)} AS reason, {losers.by_another_table(rule)}, {losers.present('w', 'w')},"
            f" {parent.image('x')} AS w_image, {losers.present('l', 'p')}, {child.image('t')} AS l_image"
            f" FROM {self.rows} LEFT JOIN {child.shadow.sql} p ON {child.same_key('p', 't')}"
            f" LEFT JOIN {parent.shadow.sql} w ON {same})",
        )

    def write(self) -> set[str]:
        """Change the children and stamp them as edits of this site; their keys from now on.

        Raises the refusal of the database, UniqueViolation too for a deferrable key, which replica role does not check.
        """
        pairs = zip(self.foreign_key.columns, self.foreign_key.referenced, strict=True)
        assigned = ", ".join(f"{quote(ours)} = x.{quote(theirs)}" for ours, theirs in pairs)
        keys = rows(
            self.connection,
            f"UPDATE {self.child.table.sql} t SET {assigned} FROM {self._children} JOIN {self._parents}"
            f" ON x.concord_row = o.concord_row WHERE {self._same_child}"
            f" RETURNING o.concord_row, {references.key_text(self.child, 't')}",
        )
        self._stamp({before for before, now in keys if before != now}, deleted=True)
        changed = {now for _, now in keys}
        self._stamp(changed, deleted=False)
        for unique in self.child.table.deferrable_unique:
            one = f"EXISTS (SELECT 1 FROM {self._keys(changed)} WHERE {self.child.same_key('k', 'r')})"
            parents.refuse_twice(self.connection, self.child, unique, self.child.table.sql, one)
        return changed

    def _stamp(self, keys: Collection[str], *, deleted: bool) -> None:
        if keys:
            stamped = f"(SELECT k.*, {literal(deleted)} AS concord_deleted FROM {self._keys(keys)})"
            run(self.connection, restamp(self.child.shadow, stamped))

    def _keys(self, keys: Collection[str]) -> str:
        return references.listed_keys(self.child, sorted(keys))
