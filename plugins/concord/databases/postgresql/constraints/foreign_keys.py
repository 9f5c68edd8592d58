"""A child here, its parent deleted there: mended by set before the commit, alike in both orders of the links (F46).

`rules.foreign_key_rule` says what gives way. Each change is an edit of the site where it is made. It gets a version
of that site's own, which has seen the replaced one, and every other site follows it. One change may orphan others,
so the search is repeated until nothing is left. Rows only ever go from kept to deleted, to brought back, to lost
for good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import psycopg

from concord.databases.postgresql.constraints import (
    absent_parents,
    clearing,
    former,
    parents,
    references,
    repaired_rows,
)
from concord.databases.postgresql.constraints.following import Following
from concord.databases.postgresql.constraints.giving_way import GivingWay
from concord.databases.postgresql.constraints.references import Orphan
from concord.databases.postgresql.constraints.repaired_rows import RepairedRows
from concord.databases.postgresql.facts.catalogue import read_tables
from concord.databases.postgresql.facts.connection import Connection
from concord.databases.postgresql.facts.keys import ForeignKey
from concord.databases.postgresql.facts.refusal import is_refusal
from concord.databases.postgresql.rows.shape import Shape, shape_of
from concord.databases.postgresql.write.judged import Judged
from concord.jobs.link import LinkJob
from concord.rules.foreign_key_rule import Child, OnDelete, Parent, Remedy, remedy
from concord.tables.replication_set import TableName

#: Far more than any chain of tables is long.
MOST_ROUNDS = 200
#: More for each foreign key: a round settles one of them, by one remedy.
ROUNDS_OF_EACH = 10


class Mending:
    """The references that one write touches."""

    def __init__(
        self,
        connection: Connection,
        job: LinkJob,
        judged: Sequence[Judged],
        left: Collection[TableName],
        repaired: RepairedRows,
    ) -> None:
        """`left` are the tables that have former rows."""
        self.connection, self.job, self.repaired = connection, job, repaired
        self.judged: Mapping[TableName, Judged] = {each.staged.shape.table.name: each for each in judged}
        self.left = set(left)
        self.opened = {name for name, each in self.judged.items() if each.staged.shape.table.referring}
        self.restored: dict[TableName, set[str]] = defaultdict(set)
        self.followed: dict[TableName, set[str]] = defaultdict(set)
        self.lost: Counter[str] = Counter()
        #: Orphans from before their foreign key, which is NOT VALID: PostgreSQL leaves them, and so do links.
        self.older = set[tuple[object, ...]]()
        #: By the foreign key and its children's rows, until a repair changes the child's table or the parent's.
        self._found: dict[tuple[ForeignKey, str], list[Orphan]] = {}

    @cached_property
    def shapes(self) -> Mapping[TableName, Shape]:
        """Every table of the replication set that links write here, whether or not this run brought rows of it."""
        site = self.job.target.name
        written = {table.at_site(site): table for table in self.job.tables if not table.captured_only}
        found = read_tables(self.connection, list(written))
        return {name: shape_of(written[name], site, table) for name, table in found.items()}

    def run(self) -> Mapping[str, int]:
        """Make every reference true; how many rows of each table gave way.

        Raises ConstraintViolated where a link cannot, and WriteContended where a row has an edit that is not
        registered; then nothing was written.
        """
        self._lock()
        for _ in range(MOST_ROUNDS + ROUNDS_OF_EACH * len(self._suspects())):
            found = self._orphans()
            if not found:
                return self.lost
            self._settle(found)
        raise references.refusal(found, self.job)

    def verify(self) -> None:
        """Raises ConstraintViolated for a reference that is not true, mendable or not: a person wrote this."""
        self._lock()
        if found := self._orphans():
            raise references.refusal(found, self.job)

    def _lock(self) -> None:
        for each in self.judged.values():
            for foreign_key in each.staged.shape.table.foreign_keys:
                with references.writing(foreign_key, self.judged, self.job.target.name):
                    references.lock_parents(self.connection, foreign_key, _staged(each))

    def _orphans(self) -> list[Orphan]:
        """The rows that refer to nothing. Before there are none, every foreign key is queried in this round."""
        remembered = bool(self._found)
        found = self._remaining()
        if found or not remembered:
            return found
        self._found.clear()
        return self._remaining()

    def _remaining(self) -> list[Orphan]:
        found: dict[tuple[object, ...], Orphan] = {}
        for foreign_key, children in self._suspects():
            if (foreign_key, children) not in self._found:
                self._found[foreign_key, children] = self._find(foreign_key, children)
            for each in self._found[foreign_key, children]:
                if each.identity not in self.older or each.lost or each.known:
                    found[each.identity] = each
        return list(found.values())

    def _find(self, foreign_key: ForeignKey, children: str) -> list[Orphan]:
        child = (
            self.shapes.get(foreign_key.child)
            if self.left or self.restored or self.followed
            else self._judged(foreign_key)
        )
        parent = self.shapes[foreign_key.parent] if foreign_key.parent in self.left else None
        with references.writing(foreign_key, self.judged, self.job.target.name):
            return references.find(self.connection, foreign_key, children, child=child, parent=parent)

    def _forget(self, repaired: ForeignKey) -> None:
        """A repair changes rows of these two tables alone."""
        changed = {repaired.child, repaired.parent}
        self._found = {
            asked: found
            for asked, found in self._found.items()
            if changed.isdisjoint((asked[0].child, asked[0].parent))
        }

    def _judged(self, foreign_key: ForeignKey) -> Shape:
        return self.judged[foreign_key.child].staged.shape

    def _suspects(self) -> list[tuple[ForeignKey, str]]:
        """The rows that were written, brought back or followed a parent, and the children of removed rows."""
        written = [
            (key, _staged(each))
            for each in self.judged.values()
            for key in each.staged.shape.table.foreign_keys
        ]
        brought_back = [
            (key, references.listed_rows(self.shapes[name], sorted(rows)))
            for name, rows in (*self.restored.items(), *self.followed.items())
            for key in self.shapes[name].table.foreign_keys
        ]
        referred = [
            (key, references.that_referred(key, self.shapes[name]))
            for name in sorted(self.left, key=str)
            for key in self.shapes[name].table.referring
        ]
        return written + brought_back + referred

    def _settle(self, found: Sequence[Orphan]) -> None:
        """One foreign key, one remedy: the declared one first, since it may leave nothing to be brought back.

        A row that can follow does so before others are looked at, which may refer to it.
        """
        groups: dict[tuple[ForeignKey, Remedy, Parent], list[Orphan]] = defaultdict(list)
        verdicts = {name: each.verdicts for name, each in self.judged.items()}
        for each, parent in absent_parents.fates(self.connection, self.job, self.shapes, verdicts, found):
            # Missing: another reference by the same column has just been changed.
            followed = parent is Parent.MISSING and each.row in self.followed.get(each.foreign_key.child, ())
            fate = Parent.LOST if followed else parent
            groups[(each.foreign_key, self._remedy(each, fate), fate)].append(each)
        order = (Remedy.REFUSE, Remedy.FOLLOW, Remedy.DELETE_CHILD, Remedy.CLEAR_CHILD, Remedy.RESTORE_PARENT)
        chosen = min(groups, key=lambda group: (order.index(group[1]), str(group[0].child), group[0].name))
        foreign_key, what, parent = chosen
        if what is Remedy.REFUSE:
            raise references.refusal(groups[chosen], self.job, waits=parent is Parent.WAITS)
        with references.writing(foreign_key, self.judged, self.job.target.name):
            if what is Remedy.RESTORE_PARENT:
                self._restore(foreign_key, groups[chosen])
            elif what is Remedy.FOLLOW:
                self._follow(foreign_key, groups[chosen])
            else:
                gone, lost = what is Remedy.DELETE_CHILD, parent in (Parent.LOST, Parent.MOVED)
                self._give_way(foreign_key, groups[chosen], gone=gone, lost=lost)
        self._forget(foreign_key)

    def _remedy(self, orphan: Orphan, fate: Parent) -> Remedy:
        foreign_key = orphan.foreign_key
        parent, child = self.shapes.get(foreign_key.parent), self.shapes.get(foreign_key.child)
        if parent is None or not clearing.ours(parent):
            return Remedy.REFUSE
        return remedy(
            Child(
                OnDelete(foreign_key.on_delete),
                clearing.cleared(child, foreign_key, lost=False),
                clearing.cleared(child, foreign_key, lost=True),
                child is not None and clearing.ours(child),
                orphan.row in self.restored.get(foreign_key.child, ()),
                follows=child is None or child.table.takes(foreign_key.columns),
                shared=child is not None,
            ),
            fate,
        )

    def _give_way(self, foreign_key: ForeignKey, found: Sequence[Orphan], *, gone: bool, lost: bool) -> None:
        """The children are deleted, or end their reference by columns that become NULL where they may."""
        shape = self.shapes[foreign_key.child]
        columns = None if gone else clearing.cleared(shape, foreign_key, lost=lost)
        listed = parents.list_orphans(self.connection, found)
        self.repaired.require(self.connection, shape, repaired_rows.keys_in(listed))
        giving_way = GivingWay(self.connection, foreign_key, self.shapes, listed, columns)
        giving_way.lock(self.job)
        self._open_former(shape)
        try:
            with self.connection.transaction():
                logged = giving_way.log(self.job)
                self._keep_former(shape, giving_way.rows, columns, lost=lost or columns is not None)
                giving_way.write()
        except psycopg.Error as error:
            if gone or not is_refusal(error):
                raise
            self._stand_firm(foreign_key, found, lost=lost)
        else:
            self.lost[shape.name] += logged

    def _stand_firm(self, foreign_key: ForeignKey, found: Sequence[Orphan], *, lost: bool) -> None:
        """Some of the children take no NULL. Such a child is deleted where its parent cannot come back. Else the
        delete of the parent would have been refused as a whole, and the parent stands again for all its children."""
        groups: dict[str, list[Orphan]] = defaultdict(list)
        for each in found:
            groups[each.row if lost else each.values].append(each)
        if len(groups) > 1:
            for group in groups.values():
                self._give_way(foreign_key, group, gone=False, lost=lost)
        elif lost:
            self._give_way(foreign_key, found, gone=True, lost=True)
        else:
            self._restore(foreign_key, found)

    def _keep_former(self, shape: Shape, rows: str, columns: tuple[str, ...] | None, *, lost: bool) -> None:
        """The children as they were: other rows may refer to them in turn."""
        if not shape.table.referring or (columns is not None and not former.referred(shape) & set(columns)):
            return
        former.keep(self.connection, shape, shape.table.sent, rows, lost=lost)
        self.left.add(shape.table.name)

    def _open_former(self, shape: Shape) -> None:
        if shape.table.name not in self.opened:
            former.open_for(self.connection, shape)
            self.opened.add(shape.table.name)

    def _follow(self, foreign_key: ForeignKey, found: Sequence[Orphan]) -> None:
        """Children whose site does not take their parent's values give way instead."""
        child, parent = self.shapes[foreign_key.child], self.shapes[foreign_key.parent]
        self._open_former(child)
        listed = parents.list_orphans(self.connection, found)
        # The parent's values are given on, and it stands in the ledger under its version.
        self.repaired.require(self.connection, parent, repaired_rows.keys_in(listed, "parent"))
        self.repaired.require(self.connection, child, repaired_rows.keys_in(listed))
        following = Following(self.connection, foreign_key, child, parent, listed)
        following.lock()
        try:
            with self.connection.transaction():
                logged = following.log(self.job, (child, parent))
                self._keep_former(child, following.rows, foreign_key.columns, lost=False)
                keys = following.write()
        except psycopg.Error as error:
            if not is_refusal(error):
                raise
            if len(found) > 1:
                for each in found:
                    self._follow(foreign_key, [each])
                return
            clears = clearing.cleared(child, foreign_key, lost=True)
            self._give_way(foreign_key, found, gone=not clears, lost=True)
        else:
            self.lost[child.name] += logged
            self.followed[child.table.name] |= keys

    def _restore(self, foreign_key: ForeignKey, found: Sequence[Orphan]) -> None:
        shape, child = self.shapes[foreign_key.parent], self.shapes.get(foreign_key.child)
        self._open_former(shape)
        back = parents.bring_back(self.connection, self.job, foreign_key, shape, child, found, self.repaired)
        if not foreign_key.validated:  # of these that are orphans still the source has no parent either
            self.older |= {each.identity for each in found}
        self.lost[shape.name] += back.logged
        self.restored[shape.table.name] |= back.keys
        self.left.add(shape.table.name)


def _staged(judged: Judged) -> str:
    shape = judged.staged.shape
    return f"{judged.staged.typed} s JOIN {shape.table.sql} c ON {shape.same_key('c', 's')}"
