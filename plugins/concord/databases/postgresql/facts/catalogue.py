"""The catalogue's words about the replicated tables: columns, key, constraints, triggers."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import psycopg
from psycopg.rows import dict_row

from concord.databases.contract.quoting import qualified, quote
from concord.databases.postgresql.facts.catalogue_queries import queries, types_query
from concord.databases.postgresql.facts.comparison import comparison_of
from concord.databases.postgresql.facts.connection import answers
from concord.databases.postgresql.facts.keys import ForeignKey, UniqueKey, foreign_key_of
from concord.databases.postgresql.facts.types import ColumnType
from concord.tables.replication_set import TableName


@dataclass(frozen=True, slots=True)
class Column:
    """One column as the catalogue describes it."""

    name: str
    type: ColumnType
    not_null: bool
    generated: bool  #: computed by the database; never sent (F49)
    identity: str  #: '', 'a' for ALWAYS, 'd' for BY DEFAULT
    deterministic: bool  #: False for a collation under which unequal texts are equal (F41)
    type_schema: str  #: where its type lives: a cast needs USAGE on it
    granted: tuple[str, str]  #: the type that needs USAGE for a table that holds such values, with its schema
    default: str | None = None  #: the expression that fills it where a row does not say
    place: int = 0  #: pg_attribute.attnum: another one when it was dropped and added again
    filled: str | None = None  #: what the rows got that were there when the column was added
    casts: tuple[str, ...] = ()  #: of its type, or of a type inside that, by functions that somebody wrote
    type_oid: int = field(default=0, compare=False)  #: as this site's log names its type
    version: str = field(default="", compare=False)  #: another one whenever the column itself was altered
    default_oid: int = field(default=0, compare=False)
    plain: bool = True  #: its type's name describes the type completely (`columns_query`)
    virtual: bool = False  #: generated whenever it is read, from PostgreSQL 18 on

    @property
    def sql(self) -> str:
        return quote(self.name)

    @property
    def must_be_given(self) -> bool:
        """A row that does not say what stands in it is refused by the database."""
        return self.not_null and self.default is None and not self.identity and not self.generated


@dataclass(frozen=True, slots=True)
class Table:
    """One replicated table as it stands in one site's catalogue."""

    name: TableName
    oid: int
    kind: str  #: pg_class.relkind
    persistence: str  #: 'p' permanent, 'u' unlogged, 't' temporary
    storage: int  #: pg_class.relfilenode: another one after every rewrite
    row_security: bool
    inherits: bool  #: it is, or has, a child table or a partition
    exclusive: (
        int  #: how many indexes it has by which rows can be in each other's way, the key's own included
    )
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[tuple[str, ...], ...]  #: of valid, complete, immediate, not deferrable unique indexes
    deferrable_unique: tuple[UniqueKey, ...]
    exclusions_deferrable: tuple[str, ...]
    temporal_keys: tuple[str, ...]  #: foreign keys with PERIOD, of this table or to it
    rules: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...]  #: of this table to its parents
    referring: tuple[ForeignKey, ...]  #: of other tables (or itself) to this one
    triggers: dict[
        str, str
    ]  #: Concord's triggers: name → definition, how it is enabled, hash of its function
    sequences: tuple[TableName, ...]  #: those that feed its columns; empty where they were not read
    compared_in: frozenset[str] = frozenset()  #: schemas of what its keys are compared by, but for pg_catalog

    @property
    def sql(self) -> str:
        return qualified(self.name.schema_name, self.name.name)

    @property
    def sent(self) -> tuple[Column, ...]:
        """The columns that travel, in the table's own order."""
        return tuple(column for column in self.columns if not column.generated)

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def takes(self, names: Sequence[str]) -> bool:
        """Can an update set these columns?"""
        return not any(each.generated or each.identity == "a" for each in map(self.column, names))

    def key_of(self, declared: Sequence[str] | None) -> tuple[str, ...]:
        return tuple(declared) if declared else self.primary_key

    @property
    def structure(self) -> str:
        """Equal at two sites when, and only when, rows of one fit into the other (F86)."""
        return fingerprint(self.columns)

    @property
    def casts(self) -> frozenset[str]:
        """By functions that somebody wrote, of any type in it."""
        return casts_of(self.columns)

    @property
    def own_types(self) -> frozenset[int]:
        """The types of its columns that are not plain (`columns_query`)."""
        return frozenset(column.type_oid for column in self.columns if not column.plain)


def fingerprint(columns: Sequence[Column]) -> str:
    """Names and types, whatever their order."""
    described = sorted((c.name, c.type.descriptor, c.generated) for c in columns)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def casts_of(columns: Sequence[Column]) -> frozenset[str]:
    """By functions that somebody wrote: they would run with the rights of whoever reads or writes a value."""
    return frozenset(cast for column in columns for cast in column.casts)


Row = dict[str, Any]


Answer = Sequence[Row]


def read_tables(connection: psycopg.Connection[Any], names: Sequence[TableName]) -> dict[TableName, Table]:
    """The tables that exist among `names`; a constant number of queries however many there are.

    One round trip, or two where not every type is plain (`columns_query`).
    """
    return tables(connection, answers(connection, *queries(names, sequences=True), row_factory=dict_row))


def tables(connection: psycopg.Connection[Any], found: Sequence[Answer]) -> dict[TableName, Table]:
    """The tables that exist, by the answers to `queries`; types that are not plain are looked up."""
    if not found:
        return {}
    heads, columns, foreign, *sequences = found
    own_types = {row["type_oid"] for row in columns if not row["plain"]}
    lookup = [types_query(own_types)] if own_types else []
    of_table = columns_by_table(columns, *answers(connection, *lookup, row_factory=dict_row))
    both_ways = [_by_table(foreign, end) for end in ("child_oid", "parent_oid")]
    fed = _by_table(list(chain.from_iterable(sequences)))
    described = [
        _table(head, of_table.get(head["oid"], []), *(each[head["oid"]] for each in (*both_ways, fed)))
        for head in heads
    ]
    return {table.name: table for table in described}


def columns_by_table(found: Answer, types: Answer = ()) -> dict[int, list[Column]]:
    """The columns by the oids of their tables, by the answers to `columns_query` and `types_query`."""
    inside = {row["oid"]: row for row in types}
    return {oid: [_column(row, inside) for row in its] for oid, its in _by_table(found).items()}


def _by_table(found: Sequence[Row], oid: str = "table_oid") -> Mapping[int, list[Row]]:
    """Looked up for each of many tables: looking through all of them for each would take its square."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for row in found:
        rows[row[oid]].append(row)
    return rows


def _table(
    head: Row,
    columns: Sequence[Column],
    own: Sequence[Row],  # foreign keys of this table
    others: Sequence[Row],  # foreign keys that refer to it
    sequences: Sequence[Row],
) -> Table:
    names = {column.place: column.name for column in columns}
    # The columns were read by a later statement: one of the index may have been dropped in between.
    complete = [each for each in head["indexes"] if each["complete"] and names.keys() >= {*each["columns"]}]
    unique = [(index, tuple(names[place] for place in index["columns"])) for index in complete]
    primary = [of for index, of in unique if index["primary"] and index["immediate"]]
    foreign, referring = (
        tuple(foreign_key_of(row) for row in found if not row["temporal"]) for found in (own, others)
    )
    return Table(
        name=TableName(schema_name=head["schema_name"], name=head["name"]),
        oid=head["oid"],
        kind=head["kind"],
        persistence=head["persistence"],
        storage=head["storage"],
        row_security=head["row_security"],
        inherits=head["inherits"],
        exclusive=len(head["indexes"]),
        columns=tuple(columns),
        primary_key=primary[0] if primary else (),
        unique_keys=tuple(of for index, of in unique if index["immediate"]),
        deferrable_unique=tuple(_unique_key(*each) for each in unique if not each[0]["immediate"]),
        exclusions_deferrable=tuple(head["exclusions_deferrable"]),
        temporal_keys=tuple(sorted({row["name"] for row in (*own, *others) if row["temporal"]})),
        rules=tuple(head["rules"]),
        foreign_keys=foreign,
        referring=referring,
        triggers=head["triggers"],
        sequences=tuple(TableName(schema_name=row["schema_name"], name=row["name"]) for row in sequences),
        compared_in=_compared_in(head["indexes"], (*foreign, *referring), referring, columns),
    )


def _unique_key(index: Row, columns: tuple[str, ...]) -> UniqueKey:
    return UniqueKey(columns, tuple(map(comparison_of, index["comparisons"])))


def _compared_in(
    indexes: Sequence[Row],
    keys: Sequence[ForeignKey],
    referring: Sequence[ForeignKey],
    columns: Sequence[Column],
) -> frozenset[str]:
    """Referenced columns are also read as text, and cast to their types."""
    compared = [comparison_of(each) for index in indexes for each in index["comparisons"]]
    compared += [each for key in keys for each in (*key.comparisons, *key.among_parents)]
    referred = {name for key in referring for name in key.referenced}
    types = {column.type_schema for column in columns if column.name in referred}
    return frozenset(types.union(*(each.schemas for each in compared)) - {"pg_catalog"})


def _column(row: Row, types: Mapping[int, Row]) -> Column:
    """`types` are those that are not plain, by their oids."""
    inside = _plain(row) if row["plain"] else types.get(row["type_oid"], _UNKNOWN)
    kind = ColumnType(
        sql=row["sql"],
        descriptor=f"{inside['chain']}:{row['modifier']}",
        kind=inside["kind"],
        root=inside["root"],
        built_in=row["type_schema"] == "pg_catalog",
    )
    return Column(
        name=row["name"],
        type=kind,
        not_null=row["not_null"],
        generated=row["generated"],
        identity=row["identity"],
        deterministic=row["deterministic"],
        type_schema=row["type_schema"],
        granted=(row["granted_schema"], row["granted_name"]),
        default=row["default_expression"],
        place=row["place"],
        filled=row["filled"],
        casts=tuple(inside["casts"]),
        type_oid=row["type_oid"],
        version=row["version"],
        default_oid=row["default_oid"],
        plain=row["plain"],
        virtual=row["virtual"],
    )


#: A type that was not looked up: no type has such a chain.
_UNKNOWN: Row = {"kind": "", "chain": "", "root": "", "casts": ()}


def _plain(row: Row) -> Row:
    """The answer of `types_query` for a plain type, from its name alone."""
    if row["element"] is None:
        return {"kind": "b", "chain": row["named"], "root": row["named"], "casts": ()}
    return {"kind": "a", "chain": f"{row['named']}/{row['element']}", "root": row["element"], "casts": ()}
