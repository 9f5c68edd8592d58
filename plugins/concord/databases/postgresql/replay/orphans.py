"""Foreign keys where both sites write: replica role asks about none, and each site's users have kept only their own.

An operation looks for its parent or its children. A missing parent may come later in the same entry, so only such an
entry is looked at once more at its end. A parent that is found is locked, as PostgreSQL's own check locks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, quote
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.comparison import Comparison
from concord.databases.postgresql.facts.keys import ForeignKey


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key between two tables of one replication."""

    key: ForeignKey
    child: ReplicatedTable
    parent: ReplicatedTable

    def wanted(self, row: str) -> list[str]:
        """The parent's key, as a staged row of the child names it."""
        return [self.child.new(row, name) for name in self.key.columns]

    def left(self, row: str) -> list[str]:
        """The key that a staged row of the parent had before."""
        return [self.parent.old(row, name) for name in self.key.referenced]

    def kept(self, row: str) -> list[str]:
        return [self.parent.new(row, name) for name in self.key.referenced]

    def asked(self, row: str, operation: str) -> str:
        """Condition: the operation needs the parent. A key that is NOT VALID leaves rows of before as they are, and so
        PostgreSQL asks only where they refer to another parent."""
        if self.key.validated:
            return f"{operation} IN ('I', 'U')"
        before = ", ".join(self.child.old(row, name) for name in self.key.columns)
        changed = f"record_image_ne(ROW({before}), ROW({', '.join(self.wanted(row))}))"
        return f"({operation} = 'I' OR {operation} = 'U' AND {changed})"

    def parent_is(self, wanted: Sequence[str]) -> str:
        """The parent `p` is the one to which values of a child refer."""
        return _met(self.key.comparisons, [f"p.{quote(name)}" for name in self.key.referenced], wanted)

    def parent_has(self, left: Sequence[str]) -> str:
        """The parent `p` has the values that a row of its table has given up."""
        return _met(self.key.among_parents, [f"p.{quote(name)}" for name in self.key.referenced], left)

    def child_has(self, left: Sequence[str]) -> str:
        """The child `t` refers to such values."""
        return _met(self.key.comparisons, left, [f"t.{quote(name)}" for name in self.key.columns])


def _met(compared: Sequence[Comparison], parent: Sequence[str], other: Sequence[str]) -> str:
    return " AND ".join(each.sql(*values) for each, *values in zip(compared, parent, other, strict=True))


def _same(row: str, columns: Sequence[str], values: Sequence[str]) -> str:
    return " AND ".join(f"{row}.{quote(name)} = {value}" for name, value in zip(columns, values, strict=True))


def references(tables: Sequence[ReplicatedTable]) -> list[Reference]:
    """All between these tables."""
    by_name = {each.table.name: each for each in tables}
    return [
        Reference(key, child, by_name[key.parent])
        for child in tables
        for key in child.table.foreign_keys
        if key.parent in by_name
    ]


def looked_for(table: ReplicatedTable, found: Sequence[Reference]) -> str:
    """After an operation on the table, which is `r`: `orphaned` says that something is missing for now."""
    row = f"(r.t{table.place})"
    return "".join((*_of_child(table, found, row), *_of_parent(table, found, row)))


def _of_child(table: ReplicatedTable, found: Sequence[Reference], row: str) -> Iterator[str]:
    for each in (one for one in found if one.child.place == table.place):
        wanted = each.wanted(row)
        refers = " AND ".join(f"{value} IS NOT NULL" for value in wanted)
        yield f"""
        IF {each.asked(row, "r.operation")} AND {refers} THEN
          PERFORM FROM {each.parent.table.sql} p WHERE {each.parent_is(wanted)} FOR KEY SHARE;
          IF NOT FOUND THEN orphaned := true; END IF;
        END IF;"""


def _of_parent(table: ReplicatedTable, found: Sequence[Reference], row: str) -> Iterator[str]:
    for each in (one for one in found if one.parent.place == table.place):
        left, kept = each.left(row), each.kept(row)
        moved = f"record_image_ne(ROW({', '.join(left)}), ROW({', '.join(kept)}))"
        yield f"""
        IF r.operation = 'D' OR (r.operation = 'U' AND {moved}) THEN
          PERFORM FROM {each.child.table.sql} t WHERE {each.child_has(left)} LIMIT 1;
          IF FOUND THEN orphaned := true; END IF;
        END IF;"""


def refused(found: Sequence[Reference], sqlstate: str) -> str:
    """At the end of an entry whose staged rows are those after `concord_began`, up to `concord_last`."""
    if not found:
        return ""
    looked = "".join(_refused(each, sqlstate) for each in found)
    return f"""IF orphaned THEN{looked}
          orphaned := false;
        END IF;"""


def of_operations(each: Reference, mine: str) -> tuple[str, str]:
    """The staged operations `s`, some of `mine`, that leave a child without its parent: a child's, a parent's."""
    here = _same("t", each.child.key, [each.child.new("s", name) for name in each.child.key])
    missing = f"NOT EXISTS (SELECT FROM {each.parent.table.sql} p WHERE {each.parent_has(each.left('s'))})"
    return (
        f"FROM {each.child.staged} s JOIN {each.child.table.sql} t ON {here}"
        f" WHERE {mine} AND {each.asked('s', 's.operation')} AND {lacks_parent(each)}",
        f"FROM {each.parent.staged} s JOIN {each.child.table.sql} t ON {each.child_has(each.left('s'))}"
        f" WHERE {mine} AND s.operation IN ('U', 'D') AND {missing}",
    )


def lacks_parent(each: Reference) -> str:
    """The child `t` refers to a parent that is not here."""
    of_child = [f"t.{quote(name)}" for name in each.key.columns]
    refers = " AND ".join(f"{value} IS NOT NULL" for value in of_child)
    return f"{refers} AND NOT EXISTS (SELECT FROM {each.parent.table.sql} p WHERE {each.parent_is(of_child)})"


def _refused(each: Reference, sqlstate: str) -> str:
    """No value is told: some may be private."""
    of_child, of_parent = of_operations(each, "s.seq > concord_began AND s.seq <= concord_last")
    names = f"{each.child.name} ({', '.join(each.key.columns)})"
    said = literal(
        f"{names}: it meets a parent that the other site has deleted, or its child".replace("%", "%%")
    )
    return f"""
          PERFORM {of_child};
          IF NOT FOUND THEN
            PERFORM {of_parent};
          END IF;
          IF FOUND THEN RAISE EXCEPTION {said} USING ERRCODE = '{sqlstate}'; END IF;"""
