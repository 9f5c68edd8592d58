"""Under replica role the database checks no foreign key and no deferrable key: the write step does (rule 13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from concord.databases.postgresql.catalogue import ForeignKey, Table
from concord.databases.postgresql.merge import Judged
from concord.databases.postgresql.session import Connection, rows, run
from concord.databases.quoting import qualified, quote
from concord.errors import ConstraintViolated
from concord.replication_set import TableName

#: Offending rows named in the error.
SHOWN = 3


def verify(connection: Connection, judged: Sequence[Judged], site: str) -> None:
    """Every foreign key and deferrable unique key that the write touched. Raises ConstraintViolated;
    the transaction then rolls back and nothing was written."""
    touched: Mapping[TableName, Judged] = {each.staged.shape.table.name: each for each in judged}
    for each in judged:
        table = each.staged.shape.table
        for foreign_key in table.foreign_keys:
            _verify_parents(connection, each, foreign_key, site)
        for foreign_key in table.referring:
            _verify_children(connection, each, foreign_key, site)
        for unique in table.deferrable_unique:
            _verify_unique(connection, touched[table.name], unique, site)


def _sql(name: TableName) -> str:
    return qualified(name.schema_name, name.name)


def _verify_parents(connection: Connection, judged: Judged, foreign_key: ForeignKey, site: str) -> None:
    """Parents of the written children exist, and are locked as the database would lock them."""
    shape, columns = judged.staged.shape, [quote(name) for name in foreign_key.columns]
    referred = ", ".join(f"c.{column}" for column in columns)
    given = " AND ".join(f"c.{column} IS NOT NULL" for column in columns)
    wanted = (
        f"SELECT DISTINCT {referred} FROM {judged.staged.typed} s JOIN {shape.table.sql} c"
        f" ON {shape.same_key('c', 's')} WHERE {given}"
    )
    matches = _matches("p", foreign_key.referenced, "w", foreign_key.columns)
    run(
        connection,
        f"SELECT count(*) FROM (SELECT 1 FROM ({wanted}) w JOIN {_sql(foreign_key.parent)} p ON {matches}"
        " FOR KEY SHARE OF p) x",
    )
    missing = rows(
        connection,
        f"SELECT w.* FROM ({wanted}) w WHERE NOT EXISTS"
        f" (SELECT 1 FROM {_sql(foreign_key.parent)} p WHERE {matches}) LIMIT {SHOWN}",
    )
    _refuse(missing, foreign_key, site)


def _verify_children(connection: Connection, judged: Judged, foreign_key: ForeignKey, site: str) -> None:
    """No child is left without the parent that was deleted or re-keyed: look at every child of a key that
    was staged as deleted, or as out of scope. The parents were locked before, so no new child can appear."""
    shape = judged.staged.shape
    if not set(foreign_key.referenced) <= set(shape.shadow.key):
        orphans = _children_without_parent(foreign_key)
    else:
        orphans = (
            f"SELECT {', '.join(f'c.{quote(name)}' for name in foreign_key.columns)} FROM {judged.staged.typed} s"
            f" JOIN {_sql(foreign_key.child)} c ON {_matches('s', foreign_key.referenced, 'c', foreign_key.columns)}"
            f" WHERE s.concord_gone AND NOT EXISTS (SELECT 1 FROM {_sql(foreign_key.parent)} p"
            f" WHERE {_matches('p', foreign_key.referenced, 'c', foreign_key.columns)})"
        )
    _refuse(rows(connection, f"{orphans} LIMIT {SHOWN}"), foreign_key, site)


def _children_without_parent(foreign_key: ForeignKey) -> str:
    """The key referred to is not the replication key: what it was is gone, so all children are looked at."""
    columns = [quote(name) for name in foreign_key.columns]
    given = " AND ".join(f"c.{column} IS NOT NULL" for column in columns)
    return (
        f"SELECT {', '.join(f'c.{column}' for column in columns)} FROM {_sql(foreign_key.child)} c WHERE {given}"
        f" AND NOT EXISTS (SELECT 1 FROM {_sql(foreign_key.parent)} p"
        f" WHERE {_matches('p', foreign_key.referenced, 'c', foreign_key.columns)})"
    )


def _matches(left: str, left_columns: Sequence[str], right: str, right_columns: Sequence[str]) -> str:
    pairs = zip(left_columns, right_columns, strict=True)
    return " AND ".join(f"{left}.{quote(ours)} = {right}.{quote(theirs)}" for ours, theirs in pairs)


def _refuse(offending: Sequence[tuple[object, ...]], foreign_key: ForeignKey, site: str) -> None:
    if offending:
        shown = "; ".join(", ".join(str(value) for value in row) for row in offending)
        raise ConstraintViolated(
            f"{site}: {foreign_key.child} refers by {foreign_key.name} to rows of {foreign_key.parent} that are not"
            f" there after this link ({shown}): one site deleted the parent while another added the child."
            " Delete the child or bring the parent back, at either site; nothing was written"
        )


def _verify_unique(connection: Connection, judged: Judged, unique: Sequence[str], site: str) -> None:
    """A deferrable unique constraint is checked by a trigger that replica role silences."""
    shape = judged.staged.shape
    same = " AND ".join(f"a.{quote(name)} = b.{quote(name)}" for name in unique)
    twice = rows(
        connection,
        f"SELECT {', '.join(f'a.{quote(name)}' for name in unique)} FROM {judged.staged.typed} s"
        f" JOIN {shape.table.sql} a ON {shape.same_key('a', 's')} JOIN {shape.table.sql} b ON {same}"
        f" WHERE NOT ({shape.same_key('a', 'b')}) LIMIT {SHOWN}",
    )
    if twice:
        raise ConstraintViolated(
            f"{site}: {shape.name} would hold {', '.join(map(str, twice[0]))} twice in its unique"
            f" ({', '.join(unique)}): two sites used one value. Change one of the rows; nothing was written"
        )


def parents_first(tables: Iterator[Table] | Sequence[Table]) -> list[TableName]:
    """Tables in an order in which every parent stands before its children, cycles broken by name (F44)."""
    remaining = {table.name: {key.parent for key in table.foreign_keys} - {table.name} for table in tables}
    ordered: list[TableName] = []
    while remaining:
        free = [name for name, parents in remaining.items() if not parents & remaining.keys()]
        for name in sorted(free or list(remaining)[:1], key=str):
            ordered.append(name)
            del remaining[name]
    return ordered
