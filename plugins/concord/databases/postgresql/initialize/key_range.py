"""Key ranges: a table cut into chunks that mean the same rows at both sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from concord.databases.contract.initialization import Key, KeyRange
from concord.databases.contract.quoting import literal
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.facts.connection import Connection, rows, run
from concord.databases.postgresql.rows.shape import Shape


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The key columns in the order of the index, and which of them must be sorted byte by byte.

    Two sites may sort text differently; a range would then hold different keys at each, and a row could seem
    missing that is not. Such columns are sorted by the collation that all databases have.
    """

    names: tuple[str, ...]
    bytewise: frozenset[str]
    divisible: bool = True  #: False where a mapping makes keys of the two sites sort differently

    def columns(self, shape: Shape) -> tuple[Column, ...]:
        names = self.names if self.divisible else shape.shadow.key
        return tuple(shape.table.column(name) for name in names)

    def of(self, shape: Shape, row: str) -> str:
        """The key of a row as a list of sortable expressions."""
        return ", ".join(
            shape.key_in(row, column) + (' COLLATE "C"' if column.name in self.bytewise else "")
            for column in self.columns(shape)
        )

    def texts(self, shape: Shape, row: str) -> str:
        columns = self.columns(shape)
        return ", ".join(column.type.exact(shape.key_in(row, column)) for column in columns)

    def literals(self, shape: Shape, key: Key) -> str:
        """A key as a row of constants."""
        pairs = zip(self.columns(shape), key, strict=True)
        return f"({', '.join(f'{literal(text)}::{column.type.sql}' for column, text in pairs)})"

    def condition(self, within: KeyRange, shape: Shape, row: str) -> str:
        """Condition on a row that a statement calls `row`: its key lies in the range."""
        key = f"({self.of(shape, row)})"
        if within.keys is not None:
            return f"{key} IN ({', '.join(self.literals(shape, each) for each in within.keys)})"
        bounds = []
        if within.lower is not None:
            bounds.append(f"{key} > {self.literals(shape, within.lower)}")
        if within.upper is not None:
            bounds.append(f"{key} <= {self.literals(shape, within.upper)}")
        return " AND ".join(bounds) or "true"


def key_order(one: tuple[Connection, Shape], other: tuple[Connection, Shape]) -> KeyOrder:
    """How both sites sort the key of a table alike, by the index of the first where possible."""
    ours, theirs = one[1], other[1]
    names = ours.shadow.key
    if (
        is_key_mapped(ours)
        or is_key_mapped(theirs)
        or set(names) != set(theirs.shadow.key)
        or any(
            ours.table.column(name).type.descriptor != theirs.table.column(name).type.descriptor
            for name in names
        )
    ):
        return KeyOrder(names, frozenset(), divisible=False)
    here, there = _collations(*one), _collations(*other)
    return KeyOrder(names, frozenset(name for name in names if here[name] != there[name]))


def is_key_mapped(shape: Shape) -> bool:
    """Does the site keep a key column otherwise than the others?"""
    return any(set(operation.own) & set(shape.key_names) for operation in shape.manipulation.operations)


def _collations(connection: Connection, shape: Shape) -> dict[str, str]:
    """The order of each column: provider, locale and version; the database's own where the column says default."""
    own = "coalesce(to_jsonb({0}) ->> '{1}locale', to_jsonb({0}) ->> '{2}', to_jsonb({0}) ->> '{1}collate')"
    column = own.format("l", "coll", "colliculocale")
    database = own.format("d", "dat", "daticulocale")
    found = rows(
        connection,
        f"""
SELECT a.attname, CASE WHEN l.oid IS NULL THEN ''
       WHEN l.collname = 'default' THEN d.datlocprovider::text || '/' || {database} || '/'
            || coalesce(pg_database_collation_actual_version(d.oid), '')
       ELSE l.collprovider::text || '/' || {column} || '/' || coalesce(pg_collation_actual_version(l.oid), '') END
  FROM pg_attribute a JOIN pg_database d ON d.datname = current_database()
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
 WHERE a.attrelid = {shape.table.oid} AND a.attnum > 0 AND NOT a.attisdropped""",
    )
    return dict(found)


def next_bound(
    ends: Sequence[tuple[Connection, Shape]], order: KeyOrder, lower: Key | None, size: int
) -> Key | None:
    """The upper bound of the next chunk: no base or shadow table at either site holds more than `size` keys
    below it. None when what is left fits into one chunk."""
    if not order.divisible:
        return None
    found = [bound for end in ends for bound in _bounds(*end, order, lower, size)]
    if not found:
        return None
    connection, shape = ends[0]
    columns = [f'"{place}"' for place in range(len(order.names))]
    typed = [
        f"{name}::{column.type.sql}" + (' COLLATE "C"' if column.name in order.bytewise else "")
        for name, column in zip(columns, order.columns(shape), strict=True)
    ]
    values = ", ".join("(" + ", ".join(map(literal, bound)) + ")" for bound in found)
    ((*least,),) = rows(
        connection,
        f"SELECT {', '.join(columns)} FROM (VALUES {values}) v ({', '.join(columns)})"
        f" ORDER BY {', '.join(typed)} LIMIT 1",
    )
    return tuple(least)


def _bounds(
    connection: Connection, shape: Shape, order: KeyOrder, lower: Key | None, size: int
) -> Iterator[Key]:
    for relation, row in ((shape.table.sql, "t"), (shape.shadow.sql, "p")):
        found = rows(
            connection,
            f"SELECT {order.texts(shape, row)} FROM {relation} {row}"
            f" WHERE {order.condition(KeyRange(lower), shape, row)} ORDER BY {order.of(shape, row)}"
            f" OFFSET {size - 1} LIMIT 2",
        )
        if len(found) == 2:
            yield tuple(found[0])


def is_empty(connection: Connection, shape: Shape, order: KeyOrder, within: KeyRange) -> bool:
    """Neither a row nor a version of one."""
    there = [
        f"EXISTS (SELECT 1 FROM {relation} {row} WHERE {order.condition(within, shape, row)})"
        for relation, row in ((shape.table.sql, "t"), (shape.shadow.sql, "p"))
    ]
    return not rows(connection, f"SELECT 1 WHERE {' OR '.join(there)}")


def _joined(shape: Shape, order: KeyOrder, within: KeyRange) -> str:
    """Base rows `t` in scope beside their shadow rows `p`, each where there is one."""
    outside = (
        f" AND NOT EXISTS (SELECT 1 FROM {shape.table.sql} o WHERE {shape.same_key('o', 'p')}"
        f" AND NOT {shape.in_scope('o')})"
        if shape.where
        else ""
    )
    return (
        f"(SELECT * FROM {shape.table.sql} t WHERE {order.condition(within, shape, 't')}"
        f" AND {shape.in_scope('t')}) t"
        f" FULL JOIN (SELECT * FROM {shape.shadow.sql} p WHERE {order.condition(within, shape, 'p')}"
        f" AND p.origin <> '' AND p.out_of_scope IS NULL{outside}) p ON {shape.same_key('t', 'p')}"
    )


def _told(shape: Shape, order: KeyOrder, within: KeyRange) -> str:
    """The same, and what has left the filter under a version, since a link would tell of it too. A row outside that
    nobody has changed is its site's own business (rule 9)."""
    if not shape.where:
        return _joined(shape, order, within)
    changed = (
        f"EXISTS (SELECT 1 FROM {shape.shadow.sql} v WHERE v.origin <> '' AND {shape.same_key('v', 't')})"
    )
    return (
        f"(SELECT * FROM {shape.table.sql} t WHERE {order.condition(within, shape, 't')}"
        f" AND ({shape.in_scope('t')} OR {changed})) t"
        f" FULL JOIN (SELECT * FROM {shape.shadow.sql} p WHERE {order.condition(within, shape, 'p')}"
        f" AND p.origin <> '' AND NOT {shape.left_elsewhere('p')}) p ON {shape.same_key('t', 'p')}"
    )


def rows_query(shape: Shape, order: KeyOrder, within: KeyRange, unsent: str) -> str:
    """Every row and tombstone of a range with its version, NULL where it has none (one statement, one cut).
    Rows that have left the filter are marked as out of scope.

    `unsent` is a condition on the shadow row `p`.
    """
    gone = f"t.{shape.key[0].sql} IS NULL"
    left = f"CASE WHEN {gone} THEN p.out_of_scope IS NOT NULL ELSE NOT {shape.in_scope('t')} END"
    columns = [
        f"{column.type.outgoing(side(shape, column))} AS {shape.alias(column)}" for column in shape.columns
    ]
    version = (
        f"p.origin, p.changed_at, p.derived, p.vector::text AS vector,"
        f" ({gone} AND p.out_of_scope IS NULL) AS deleted, coalesce(p.born, false) AS born,"
        f" {left if shape.where else 'false'} AS out_of_scope, coalesce({unsent}, false) AS unsent,"
        " coalesce(p.agreed, false) AS agreed"
    )
    return f"SELECT {', '.join(columns)}, {version} FROM {_told(shape, order, within)}"


def forget_other_filters(connection: Connection, shape: Shape) -> int:
    """Remove the marks of rows that left a filter which is not this one; how many."""
    gone = f"NOT EXISTS (SELECT 1 FROM {shape.table.sql} t WHERE {shape.same_key('t', 'p')})"
    return run(connection, f"DELETE FROM {shape.shadow.sql} p WHERE {shape.left_elsewhere('p')} AND {gone}")


def side(shape: Shape, column: Column) -> str:
    """A column of a base row `t`; of the key also where only its shadow row `p` is left."""
    if column.name not in shape.shadow.key:
        return f"t.{column.sql}"
    return f"coalesce(t.{column.sql}, {shape.key_in('p', column)})"


def count_and_hash(
    connection: Connection, shape: Shape, order: KeyOrder, within: KeyRange
) -> tuple[int, str]:
    """How many rows and tombstones a range holds, and a hash over them and their versions in any order."""
    texts = [column.type.exact(side(shape, column)) for column in shape.columns]
    version = ["p.origin", "p.changed_at", "p.derived", "p.vector", f"t.{shape.key[0].sql} IS NULL"]
    left, right = (
        f"coalesce(sum(('x' || {half}(h, 16))::bit(64)::bigint::numeric), 0)" for half in ("left", "right")
    )
    ((count, digest),) = rows(
        connection,
        f"SELECT count(*), {left}::text || '/' || {right}::text FROM (SELECT"
        f" md5(ROW({', '.join(texts + version)})::text) AS h FROM {_joined(shape, order, within)}) x",
    )
    return int(count), str(digest)
