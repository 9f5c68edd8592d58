"""Random rows for any table: a value for each column that the database does not fill itself."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from tests.link.applications.catalogue import Column, ForeignKey, Table

Row = dict[str, Any]

_WORDS = (
    "amber",
    "basalt",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbour",
    "isle",
    "juniper",
    "kelp",
)
#: Columns whose dates are later than those of the others: a CHECK has them in order.
_LATER = {"shipped_on", "due_on"}


def _moment(random: Random) -> str:
    return f"2026-0{random.randint(1, 9)}-{random.randint(10, 28)} 0{random.randint(0, 9)}:17:07.25"


def _days(random: Random) -> str:
    day = random.randint(10, 18)
    return f"[2026-03-{day},2026-03-{day + random.randint(1, 9)})"


#: How PostgreSQL reads a value of each type.
_VALUES: dict[str, Callable[[Random], str]] = {
    "smallint": lambda random: str(random.randint(1, 9_999)),
    "integer": lambda random: str(random.randint(1, 999_999)),
    "bigint": lambda random: str(random.randint(1, 10**15)),
    "numeric": lambda random: str(random.randint(0, 9_999) / 100),
    "real": lambda random: f"{random.random():.3}",
    "double precision": lambda random: repr(random.random()),
    "boolean": lambda random: random.choice(("true", "false")),
    "timestamp without time zone": _moment,
    "timestamp with time zone": lambda random: f"{_moment(random)}+02",
    "interval": lambda random: f"{random.randint(0, 3)} days {random.randint(1, 90)} minutes",
    "daterange": _days,
    "uuid": lambda random: str(UUID(int=random.getrandbits(128))),
    "bytea": lambda random: rf"\x{random.randbytes(random.randint(1, 40)).hex()}",
    "jsonb": lambda random: json.dumps({word: random.randint(0, 9) for word in random.sample(_WORDS, 3)}),
    "inet": lambda random: f"10.{random.randint(0, 255)}.0.{random.randint(1, 254)}",
    "integer[]": lambda random: f"{{{random.randint(0, 9)},{random.randint(0, 9)}}}",
    "text[]": lambda random: f"{{{','.join(random.choices(_WORDS, k=random.randint(0, 3)))}}}",
}


class Parents:
    """The values that a site's rows can refer to, each list read once."""

    def __init__(self, site: psycopg.Connection[Any]) -> None:
        self._site = site
        self._known: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = {}

    def of(self, key: ForeignKey) -> list[tuple[Any, ...]]:
        if (wanted := (key.parent, key.parent_columns)) not in self._known:
            columns = sql.SQL(", ").join(map(sql.Identifier, key.parent_columns))
            query = sql.SQL("SELECT {0} FROM {1} ORDER BY {0}").format(columns, sql.SQL(key.parent))
            self._known[wanted] = self._site.execute(query).fetchall()
        return self._known[wanted]


class RandomRows:
    """Rows for the tables of one application. Two sites' rows have no unique value in common by chance."""

    def __init__(self, tables: Mapping[str, Table], seed: int) -> None:
        self.tables, self.random = tables, Random(seed)
        self._numbers = count(1)
        self._taken: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)

    def row(self, parents: Parents, table: Table, fixed: Row) -> Row:
        """A new row with these values fixed, without the columns that the database fills."""
        for _ in range(1000):
            row = {**self._parents(parents, table, fixed), **fixed}
            free = [each for name, each in table.columns.items() if name not in row and not each.filled]
            row |= {each.name: self._value(each) for each in free}
            if self._takes(table, row, fixed):
                return row
        raise AssertionError(f"{table.name}: each combination of parents has a row")

    def changes(self, parents: Parents, table: Table) -> Row:
        """New values for some columns of a row; none where it has nothing but its key and unique values."""
        free = [
            each.name
            for each in table.columns.values()
            if each.updatable and not (each.unique or each.filled)
        ]
        chosen = set(self.random.sample(free, min(len(free), 3)))
        row: Row = {}
        for key in table.foreign_keys:
            if chosen & set(key.columns):
                row |= self._parent(parents, table, key, ())
        return row | {name: self._value(table.columns[name]) for name in sorted(chosen - row.keys())}

    def _parents(self, parents: Parents, table: Table, fixed: Row) -> Row:
        """A parent for each foreign key, no row twice."""
        row: Row = {}
        for key in table.foreign_keys:
            if {*row, *fixed}.isdisjoint(key.columns):
                alike = [each.columns for each in table.foreign_keys if each.parent == key.parent]
                used = [tuple(row[name] for name in names) for names in alike if row.keys() >= set(names)]
                row |= self._parent(parents, table, key, used)
        return row

    def _parent(
        self, parents: Parents, table: Table, key: ForeignKey, used: Iterable[tuple[Any, ...]]
    ) -> Row:
        there = [each for each in parents.of(key) if each not in used]
        may_lack = all(table.columns[name].nullable for name in key.columns)
        none = not there or (may_lack and self.random.random() < 0.2)
        values = (None,) * len(key.columns) if none else self.random.choice(there)
        return dict(zip(key.columns, values, strict=True))

    def _takes(self, table: Table, row: Row, fixed: Row) -> bool:
        """Take the row's combinations of unique values, unless a row has one of them; `fixed` ones may be taken."""
        found = {
            (table.name, *names): tuple(str(row[name]) for name in names)
            for names in (table.key, *table.uniques)
            if row.keys() >= set(names) and not fixed.keys() >= set(names)
        }
        if any(values in self._taken[unique] for unique, values in found.items()):
            return False
        for unique, values in found.items():
            self._taken[unique].add(values)
        return True

    def _value(self, column: Column) -> str | None:
        if column.nullable and self.random.random() < 0.1:
            return None
        if column.unique or column.domain == "email":
            return self._new(column)
        return self._any(column)

    def _new(self, column: Column) -> str:
        """A value that no other row has."""
        number = next(self._numbers)
        if column.domain == "email":
            return f"{self.random.choice(_WORDS).title()}.{number}@Example.org"
        if column.type in ("text", "character varying", "character"):
            short = column.length is not None and column.length < 20
            return f"{number:X}" if short else f"{self.random.choice(_WORDS)}-{number}"
        return str(number) if column.type in ("smallint", "integer", "bigint") else self._any(column)

    def _any(self, column: Column) -> str:
        if column.labels:
            label = f'"{self.random.choice(column.labels)}"'
            return f"{{{label}}}" if column.type.endswith("[]") else label.strip('"')
        if column.domain == "colour":
            return f"#{self.random.getrandbits(24):06x}"
        if column.type == "date":
            year = 2025 if column.name in _LATER else 2024
            return f"{year}-0{self.random.randint(1, 9)}-{self.random.randint(10, 28)}"
        if column.type in _VALUES:
            return _VALUES[column.type](self.random)
        words = " ".join(self.random.choices(_WORDS, k=self.random.randint(1, 4)))
        return words[: column.length]
