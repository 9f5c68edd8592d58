"""Keys that an entry joins by changing a row's key: with `scope: row` the row's two keys are rejected together.

Else one of them would be written without the other: the row would stand twice at the publisher, or not at all.
"""

from __future__ import annotations

from concord.databases.postgresql.queued.rejected import Contested
from concord.databases.postgresql.queued.versioned_rows import VersionedRows


class MovedKeys:
    """Those of one table: a temporary table of pairs, each in both orders; empty between entries."""

    def __init__(self, rows: VersionedRows, contested: Contested) -> None:
        self.rows, self.contested = rows, contested
        self._name = f"concord_moved_{rows.table.place}"
        self._flag = f"moved_{rows.table.place}"
        self._one, self._other = ([f"{side}{at}" for at in range(len(rows.of.keys))] for side in "ab")

    @property
    def created(self) -> str:
        types = [column.type.sql for column in self.rows.of.keys] * 2
        pairs = zip([*self._one, *self._other], types, strict=True)
        return f"CREATE TEMPORARY TABLE {self._name} ({', '.join(f'{name} {kind}' for name, kind in pairs)})"

    @property
    def declared(self) -> str:
        return f"{self._flag} boolean := false;"

    @property
    def noted(self) -> str:
        """The staged row has the keys before and after."""
        old, new = ", ".join(self.rows.forgotten_key), ", ".join(self.rows.key)
        return (
            f"INSERT INTO pg_temp.{self._name} VALUES ({old}, {new}), ({new}, {old}); {self._flag} := true;"
        )

    @property
    def joined(self) -> str:
        """Once all versions are judged: whatever is joined to a contested key is contested as well."""
        contested, names = self.contested, ", ".join(f"k{at}" for at in range(len(self._one)))
        return f"""
        IF {self._flag} THEN
          WHILE contested LOOP
            INSERT INTO {contested.name} ({names}) SELECT {", ".join(f"m.{name}" for name in self._other)}
              FROM pg_temp.{self._name} m WHERE {contested.has([f"m.{name}" for name in self._one])}
              ON CONFLICT DO NOTHING;
            EXIT WHEN NOT FOUND;
          END LOOP;
          DELETE FROM pg_temp.{self._name}; {self._flag} := false;
        END IF;"""
