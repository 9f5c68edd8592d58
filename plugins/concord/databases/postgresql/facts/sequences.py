"""Which sequences feed the replicated tables, and how far each has counted (S2-18, F48)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Several
from dataclasses import dataclass

from concord.databases.contract.quoting import literal, qualified
from concord.databases.postgresql.facts.catalogue_queries import FED
from concord.databases.postgresql.facts.connection import Connection, rows
from concord.databases.postgresql.facts.privileges import Grant, Kind
from concord.tables.identity import Share
from concord.tables.replication_set import TableName

#: The greatest value of each integer type; a column of another type holds whatever its sequence gives.
LARGEST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}


@dataclass(frozen=True, slots=True)
class Fed:
    """A column that a sequence feeds."""

    table: TableName
    column: str
    type: str  #: as the catalogue formats it, without a precision; of a domain, the type under it
    unique: bool  #: by itself: two rows with one number cannot both be

    @property
    def is_integer(self) -> bool:
        return self.type in LARGEST

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.type == "numeric"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence at one site, and the columns that it feeds (`catalogue_queries.FED`)."""

    schema_name: str
    name: str
    type: str
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycles: bool
    next: int  #: what the next caller gets
    fed: tuple[Fed, ...]

    @property
    def sql(self) -> str:
        return qualified(self.schema_name, self.name)

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.name}"

    @property
    def largest(self) -> int:
        """Where it ends: its own limit, or what the smallest column that it feeds can hold."""
        return min(self.maximum, self.holds)

    @property
    def holds(self) -> int:
        """The greatest number that its type and the columns that it feeds can hold, whatever its limit is."""
        return min(
            LARGEST[kind] for kind in (self.type, *(each.type for each in self.fed if each.is_integer))
        )

    @property
    def smallest(self) -> int:
        """Where one ends that counts downwards."""
        return max(self.minimum, -1 - self.holds)

    @property
    def rest(self) -> Share:
        """The numbers that it is going to hand out, as it is now, the least first."""
        if self.increment > 0:
            return Share(self.next, self.largest, self.increment)
        step = -self.increment
        return Share(self.next - (self.next - self.smallest) // step * step, self.next, step)


#: The type of a column `a`; of a domain, the type under it.
_TYPE = """
(WITH RECURSIVE under AS (
   SELECT y.oid, y.typtype, y.typbasetype FROM pg_type y WHERE y.oid = a.atttypid
   UNION ALL
   SELECT y.oid, y.typtype, y.typbasetype FROM under u JOIN pg_type y ON y.oid = u.typbasetype WHERE u.typtype = 'd')
 SELECT format_type(oid, NULL) FROM under WHERE typtype <> 'd')"""


def read(connection: Connection, tables: Several[TableName]) -> list[Sequence]:
    """The sequences that feed columns of `tables`, by name. Reads only, but needs SELECT on each."""
    if not tables:
        return []
    found = rows(
        connection,
        f"""
SELECT sn.nspname, s.relname, q.seqtypid::regtype::text, q.seqincrement, q.seqmin, q.seqmax, q.seqcache, q.seqcycle,
       json_agg(json_build_array(tn.nspname, t.relname, a.attname, {_TYPE},
                EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = t.oid AND i.indisunique
                           AND a.attnum = ANY (i.indkey))) ORDER BY t.oid, a.attnum)
  {_feeding(tables)} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2""",
    )
    return [_sequence(connection, *row) for row in found]


def names(connection: Connection, tables: Several[TableName]) -> list[TableName]:
    """The names of these sequences. Reads the catalogue alone: for that no right is needed."""
    if not tables:
        return []
    found = rows(connection, f"SELECT DISTINCT sn.nspname, s.relname {_feeding(tables)} ORDER BY 1, 2")
    return [TableName(schema_name=schema, name=name) for schema, name in found]


def rights_to_move(names: Iterable[TableName], login: str) -> Iterator[Grant]:
    """The grants with which a login may move these sequences past the rows that it writes."""
    for name in names:
        yield Grant(login, ("USAGE",), Kind.SCHEMA, (name.schema_name,))
        yield Grant(login, ("SELECT", "UPDATE"), Kind.SEQUENCE, (name.schema_name, name.name))


def _feeding(tables: Several[TableName]) -> str:
    wanted = ", ".join(f"({literal(name.schema_name)}, {literal(name.name)})" for name in tables)
    return f"""
  FROM ({FED}) f
  JOIN pg_sequence q ON q.seqrelid = f.sequence
  JOIN pg_class s ON s.oid = f.sequence JOIN pg_namespace sn ON sn.oid = s.relnamespace
  JOIN pg_class t ON t.oid = f.table_oid JOIN pg_namespace tn ON tn.oid = t.relnamespace
  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = f.attnum
 WHERE (tn.nspname, t.relname) IN ({wanted})"""


def _sequence(  # noqa: PLR0913, PLR0917 - one argument a column
    connection: Connection,
    schema: str,
    name: str,
    kind: str,
    increment: int,
    minimum: int,
    maximum: int,
    cache: int,
    cycles: bool,
    fed: list[tuple[str, str, str, str, bool]],
) -> Sequence:
    ((following,),) = rows(
        connection,
        f"SELECT CASE WHEN is_called THEN last_value::numeric + {increment} ELSE last_value END"
        f" FROM {qualified(schema, name)}",
    )
    columns = tuple(
        Fed(TableName(schema_name=of, name=table), column, of_type, unique)
        for of, table, column, of_type, unique in fed
    )
    return Sequence(schema, name, kind, increment, minimum, maximum, cache, cycles, int(following), columns)
