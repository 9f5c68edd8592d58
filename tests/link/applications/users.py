"""Users of one site: they insert through its sequences, change and delete rows, as its application lets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.rows import dict_row

from tests.link.applications.catalogue import Table
from tests.link.applications.random_rows import Parents, RandomRows, Row

Key = tuple[Any, ...]


@dataclass
class Users:
    """A session of theirs. `inserts` has the statements of tables that a function of the application fills."""

    session: psycopg.Connection[Any]
    rows: RandomRows
    inserts: Mapping[str, str]

    @property
    def tables(self) -> Mapping[str, Table]:
        return self.rows.tables

    def keys(self, table: Table) -> list[Key]:
        query = sql.SQL("SELECT {0} FROM {1} ORDER BY {0}").format(_listed(table.key), sql.SQL(table.name))
        return self.session.execute(query).fetchall()

    def insert(self, table: Table, fixed: Row | None = None) -> Row:
        """One row, as it is afterwards; of a table with a statement of its own, its key."""
        (row,) = self.insert_many(table, 1, fixed)
        return row

    def insert_many(self, table: Table, number: int, fixed: Row | None = None) -> list[Row]:
        """So many rows, whose parents are there before. An insert that is refused is an error."""
        parents = Parents(self.session)
        made = [self.rows.row(parents, table, fixed or {}) for _ in range(number)]
        with self.session.transaction(), self.session.cursor(row_factory=dict_row) as cursor:
            cursor.executemany(self._insertion(table, made[0]), made, returning=True)
            return [cursor.fetchone() or {} for _ in cursor.results()]

    def _insertion(self, table: Table, row: Row) -> sql.SQL | sql.Composed:
        if table.name in self.inserts:
            return sql.SQL(self.inserts[table.name])  # type: ignore[arg-type]
        values = sql.SQL(", ").join(map(sql.Placeholder, row))
        insertion = (
            "INSERT INTO {} ({}) VALUES ({}) RETURNING *"
            if row
            else "INSERT INTO {} DEFAULT VALUES RETURNING *"
        )
        return sql.SQL(insertion).format(sql.SQL(table.name), _listed(row), values)

    def update(self, table: Table, key: Key) -> bool:
        """Change some columns of that row; False where users change none of this table's."""
        changes = self.rows.changes(Parents(self.session), table)
        if not changes:
            return False
        assigned = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in changes
        )
        update = sql.SQL("UPDATE {} SET {} WHERE {}").format(sql.SQL(table.name), assigned, _is_key(table))
        self.session.execute(update, {**changes, **_key_values(key)})
        return True

    def delete(self, table: Table, keys: Sequence[Key]) -> Row | None:
        """The first row of these keys that no other row keeps from being deleted, as it was."""
        delete = sql.SQL("DELETE FROM {} WHERE {} RETURNING *").format(sql.SQL(table.name), _is_key(table))
        for key in keys:
            try:
                with self.session.transaction(), self.session.cursor(row_factory=dict_row) as cursor:
                    found = cursor.execute(delete, _key_values(key)).fetchone()
            except errors.ForeignKeyViolation:
                continue
            if found is not None:
                return found
        return None


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _is_key(table: Table) -> sql.Composed:
    parts = [
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(f"key_{place}"))
        for place, name in enumerate(table.key)
    ]
    return sql.SQL(" AND ").join(parts)


def _key_values(key: Key) -> Row:
    return {f"key_{place}": value for place, value in enumerate(key)}
