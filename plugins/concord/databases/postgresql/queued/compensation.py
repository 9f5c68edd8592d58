"""`concord.compensation` at the publisher: rows that a subscriber takes back (S3-26 to S3-32).

The publisher's own log brings them, so a subscriber meets one where it belongs among the publisher's transactions.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.queued.versioned_rows import VersionedRows
from concord.tables.replication_set import TableName

NAME = TableName(schema_name="concord", name="compensation")
SQL = "concord.compensation"

STATEMENTS = [
    # `rejected` is the version that gives way; `image` and `version` are the publisher's, NULL where it has none;
    # `conflict` is the entry of its log, where the subscriber is to have it as well (S3-05).
    f"""
CREATE TABLE IF NOT EXISTS {SQL} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  replication text NOT NULL,
  table_name text NOT NULL,
  key jsonb NOT NULL,
  rejected jsonb NOT NULL,
  image jsonb,
  version jsonb,
  conflict jsonb)""",
]


class Compensation:
    """How a subscriber takes one row of one table back: only where the rejected version still stands (S3-22).

    A later edit that stands there is rejected in its turn, and brings a compensation of its own.
    """

    def __init__(self, rows: VersionedRows, staged: ReplicatedTable) -> None:
        self.rows = rows
        values = {column.name: f"(r.t{staged.place}).c{at}" for at, column in enumerate(staged.columns)}
        self.key, self.rejected = values["key"], values["rejected"]
        self.image, self.version = values["image"], values["version"]
        self.table_name, self.conflict = values["table_name"], values["conflict"]

    @property
    def statements(self) -> str:
        rows, count = self.rows, self.rows.of.count
        return f"""
          PERFORM FROM {rows.sql} t WHERE {self._at_key("t")} FOR UPDATE;
          SELECT s.origin, s.changed_at, s.derived INTO origin_here, changed_here, derived_here
            FROM {rows.shadow} s WHERE {self._at_shadow};
          IF (origin_here, changed_here, derived_here) IS NOT DISTINCT FROM {rows.dot_of(self.rejected)} THEN
            IF {self.image} IS NULL THEN
              DELETE FROM {rows.sql} t WHERE {self._at_key("t")};
            ELSE
              {self._written};
            END IF;
            IF {self.version} IS NULL THEN
              DELETE FROM {rows.shadow} s WHERE {self._at_shadow};
            ELSE
              {self._versioned};
            END IF;
            INSERT INTO concord.conflict
              SELECT k.* FROM jsonb_populate_record(NULL::concord.conflict, {self.conflict}) k WHERE k.id IS NOT NULL
              ON CONFLICT (id) DO NOTHING;
            {count("compensated")}
          ELSE
            {count("superseded")}
          END IF;"""

    def _at_key(self, row: str) -> str:
        columns = self.rows.of.keys
        return " AND ".join(
            f"{row}.{column.sql} = {self._key_value(at)}" for at, column in enumerate(columns)
        )

    @property
    def _at_shadow(self) -> str:
        columns = self.rows.versions.key_columns
        return " AND ".join(f"s.{column.sql} = {self._key_value(at)}" for at, column in enumerate(columns))

    def _key_value(self, at: int) -> str:
        return f"({self.key} ->> {at})::{self.rows.of.keys[at].type.sql}"

    @property
    def _written(self) -> str:
        """A user's row of that key which came meanwhile has a version of its own, and the next statement meets it."""
        of = self.rows.of
        values = {column.name: self._value(column) for column in self.rows.table.columns}
        changed = of.changed(values)
        return f"{of.insert} VALUES ({', '.join(values.values())}) ON CONFLICT ({of.key}) DO UPDATE SET {changed}"

    def _value(self, column: Column) -> str:
        return f"({self.image} ->> {literal(column.name)})::{column.type.sql}"

    @property
    def _versioned(self) -> str:
        key = [self._key_value(at) for at in range(len(self.rows.of.keys))]
        return self.rows.upsert_version(key, self.version, where=f"{self.rows.dot_of(self.rejected)}")
