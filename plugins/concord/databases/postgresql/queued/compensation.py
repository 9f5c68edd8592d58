"""`concord.compensation` at the publisher: rows that a subscriber takes back (S3-26 to S3-32).

The publisher's own log brings them, so a subscriber meets one where it belongs among the publisher's transactions.
A subscriber that could not write a row asks for it: a row of its own table, which its log brings to the publisher.
"""

from __future__ import annotations

from concord.databases.contract.quoting import literal
from concord.databases.postgresql.entries.staging import ReplicatedTable
from concord.databases.postgresql.facts.catalogue import Column
from concord.databases.postgresql.queued.versioned_rows import VersionedRows
from concord.jobs.link import Direction
from concord.jobs.replication import ReplicationJob
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


def asked(job: ReplicationJob, found: str) -> str:
    """Ask for rows: their table, their key, and the version that stands there. The log keeps what is gone at once."""
    mine = literal(job.synchronization)
    return (
        f"INSERT INTO {SQL} (replication, table_name, key, rejected) SELECT {mine}, x.* FROM ({found}) x;"
        f" DELETE FROM {SQL} WHERE replication = {mine}"
    )


def reported(conflict: str, source: str = "") -> str:
    """The publisher's log entry at the subscriber, whatever its users have made of the row meanwhile (S3-05)."""
    found = f"{source}jsonb_populate_record(NULL::concord.conflict, {conflict}) k"
    return (
        f"INSERT INTO concord.conflict SELECT k.* FROM {found} WHERE k.id IS NOT NULL"
        " ON CONFLICT (id) DO NOTHING"
    )


class Compensation:
    """How a subscriber takes one row of one table back: only where the rejected version still stands (S3-22).

    A later edit that stands there is rejected in its turn, and brings a compensation of its own.
    """

    def __init__(self, rows: VersionedRows, staged: ReplicatedTable, job: ReplicationJob) -> None:
        self.rows, self.job = rows, job
        values = {column.name: f"(r.t{staged.place}).c{at}" for at, column in enumerate(staged.columns)}
        self.key, self.rejected = values["key"], values["rejected"]
        self.image, self.version = values["image"], values["version"]
        self.table_name, self.conflict = values["table_name"], values["conflict"]

    @property
    def statements(self) -> str:
        return self._answered if self.job.direction is Direction.REVERSE else self._taken_back

    @property
    def _answered(self) -> str:
        """The publisher tells what it has. A user who writes that row waits, or is waited for."""
        rows = self.rows
        there = f"CASE WHEN t.{rows.of.keys[0].sql} IS NOT NULL THEN {rows.row_image()} END"
        return f"""
          PERFORM FROM {rows.sql} t WHERE {self._at_key("t")} FOR UPDATE;
          PERFORM FROM {rows.shadow} s WHERE {self._at_shadow} FOR UPDATE;
          INSERT INTO {SQL} (replication, table_name, key, rejected, image, version)
            SELECT {literal(self.job.synchronization)}, {self.table_name}, {self.key}, {self.rejected}, {there},
                   {rows.present()}
              FROM (VALUES (1)) x LEFT JOIN {rows.sql} t ON {self._at_key("t")}
              LEFT JOIN {rows.shadow} s ON {self._at_shadow};"""

    @property
    def _taken_back(self) -> str:
        rows, count = self.rows, self.rows.of.count
        return f"""
          PERFORM FROM {rows.sql} t WHERE {self._at_key("t")} FOR UPDATE;
          SELECT s.origin, s.changed_at, s.derived INTO origin_here, changed_here, derived_here
            FROM {rows.shadow} s WHERE {self._at_shadow} FOR UPDATE;
          {reported(self.conflict)};
          IF (origin_here, changed_here, derived_here) IS NOT DISTINCT FROM {rows.dot_of(self.rejected)} THEN
            IF fallen THEN{self._made_room}
            ELSE{self._made}
            END IF;
          ELSE
            {count("superseded")}
          END IF;"""

    @property
    def _made(self) -> str:
        rows = self.rows
        return f"""
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
              {rows.of.count("compensated")}"""

    @property
    def _made_room(self) -> str:
        """A row that waits to be taken back itself has one of its values, and may wait for one of this row's.

        So this row goes for now, and is asked for. Whatever stays is the publisher's, whose rows fit together.
        """
        found = f"SELECT {self.table_name}, {self.key}, {self.rejected}"
        return f"""
              DELETE FROM {self.rows.sql} t WHERE {self._at_key("t")};
              BEGIN{self._made}
              EXCEPTION WHEN unique_violation OR exclusion_violation THEN
                {asked(self.job, found)}; {self.rows.of.count("superseded")}
              END;"""

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
